"""Text with tags in it: pieces of text and numbered tags, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tag:
    """A tag in a text. The two of a pair have the same `id`, which nothing else in the text has."""

    kind: Literal["open", "close", "alone"]
    id: int


TaggedText = list[str | Tag]


def text_of(parts: Sequence[str | Tag]) -> str:
    """The text without the tags."""
    return "".join(part for part in parts if isinstance(part, str))
