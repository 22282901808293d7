"""File formats that are read and written again with other texts: documents to translate."""
