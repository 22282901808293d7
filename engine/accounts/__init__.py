"""Accounts of people from the command line. What they are is in `engine.store.accounts`, what they may in `engine.access`."""
