"""Experiments over public data: every method on the same samples, base, budget and decoding."""
