"""Text with inline tags: pieces of text and numbered tags, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tag:
    """A tag in a text. The two tags of a pair share an `id`; otherwise ids are unique in the text."""

    kind: Literal["open", "close", "alone"]
    id: int


TaggedText = list[str | Tag]


def add_text(parts: TaggedText, text: str) -> None:
    """Append a text to the parts, merging it with a text at their end."""
    if parts and isinstance(parts[-1], str):
        parts[-1] += text
    elif text:
        parts.append(text)


def text_of(parts: Sequence[str | Tag]) -> str:
    """The text without the tags."""
    return "".join(part for part in parts if isinstance(part, str))
