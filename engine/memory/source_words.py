"""The words of encoded source sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.corpora.tokenize import joined, words

if TYPE_CHECKING:
    from engine.base import BaseModel


def source_words(base: BaseModel, rows: Sequence[Sequence[int]]) -> list[list[str]]:
    """Words of source sentences given as token ids: what is left of the text after the base's own normalisation, so that a
    sentence of the set and one to be translated are cut alike.
    """
    convert = base.tokenizer.convert_ids_to_tokens
    return [words(joined(convert([i for i in map(int, row) if i not in base.special_ids]))) for row in rows]
