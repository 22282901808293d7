"""Training parsers from treebanks with stanza's trainers, in stanza's layout."""
