"""The engine of Tailor MT: everything that works on texts, models and plugins. It imports nothing of the studio."""

__version__ = "0.1.0"
