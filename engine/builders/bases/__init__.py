"""Training a base of our own from sentence pairs: one Marian model that translates both ways.

pairs -> cleaning -> joint SentencePiece -> packed rows -> training -> a folder that transformers loads, with its card
"""

from engine.builders.bases.options import SIZES, BaseTrainingOptions
from engine.builders.bases.run import BaseRun, train_base

__all__ = ["SIZES", "BaseRun", "BaseTrainingOptions", "train_base"]
