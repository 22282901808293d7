"""The rows of `bench/speed.py`: what is measured, side by side in one run, and how the table is made."""
