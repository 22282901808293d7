"""Parsers of our own: trained from treebanks by stanza's trainers, kept in stanza's layout."""
