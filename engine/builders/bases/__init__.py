"""Training a base from sentence pairs: one Marian model that translates in both directions.

pairs -> cleaning -> joint SentencePiece -> packed rows -> training -> a folder that transformers loads, with its card
"""
