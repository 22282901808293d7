"""Phrases of all lengths from the user's sentences, the material of the memory."""

from engine.phrases.extract import Drawing, extract_phrases, parse_tree
from engine.phrases.options import PhraseOptions
from engine.phrases.statistical import Association
from engine.phrases.types import Phrase, PhraseSet, Tree
