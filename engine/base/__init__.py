"""The frozen base model: loading, tokenising, translating, scoring, and the pair of directions for back-translation."""

from engine.base.metadata import read_card
from engine.base.model import BaseModel, LanguagePair
