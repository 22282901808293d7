"""The studio: the user interface. Pages read rows and files; work is done by jobs of the engine."""

import gc

# What is imported stays for ever: looking through it dozens of times while more comes takes a quarter of the start.
gc.set_threshold(20_000, 20, 50)
