"""The frozen base model: loading, tokenising, translating, scoring, and the pair of directions that back-translation needs."""

from engine.base.metadata import read_card
from engine.base.model import BaseModel, LanguagePair
