"""Training a base of our own from sentence pairs: one Marian model that translates both ways.

pairs -> cleaning -> joint SentencePiece -> packed rows -> training -> a folder that transformers loads, with its card
"""

from engine.base.train.options import SIZES, BaseTrainingOptions
from engine.base.train.run import train_base

__all__ = ["SIZES", "BaseTrainingOptions", "train_base"]
