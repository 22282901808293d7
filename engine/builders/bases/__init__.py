"""Training a base of our own from sentence pairs: one Marian model that translates both ways.

pairs -> cleaning -> joint SentencePiece -> packed rows -> training -> a folder that transformers loads, with its card
"""
