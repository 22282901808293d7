"""Building assets: base models and parsers. Only their commands import this package."""
