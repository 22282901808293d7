"""Inputs that nobody meant, for everything that reads what a stranger may have written: see bench/README.md, "Fuzzing"."""
