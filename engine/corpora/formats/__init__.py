"""File formats, read into segments."""
