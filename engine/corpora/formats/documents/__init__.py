"""Documents to translate: file formats that are read and written again with other texts."""
