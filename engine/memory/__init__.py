"""The multi-granular continuous memory of paper 1: phrase pairs, their layers, their recorded vectors."""

from engine.memory.layer_assignment import assign_layers
from engine.memory.phrase_pairs import PairRules, PhrasePair, load_pairs, save_pairs, translate_phrases
from engine.memory.record import record
from engine.memory.store import Memory, open_memory
