"""A plain-text table for any script, with the cell widths of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any


def width(text: str) -> int:
    """Terminal columns that a text occupies: two for a wide character."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def wrap(text: str, columns: int) -> list[str]:
    """Break a text into lines of at most `columns`, at spaces if possible."""
    lines, line, used = [], "", 0
    words = text.split(" ")
    for i, word in enumerate(words):
        piece = word if i == len(words) - 1 else word + " "
        if used + width(word) > columns and line.strip() and width(word) <= columns:
            lines.append(line.rstrip())
            line, used = "", 0
        for c in piece:
            if used + width(c) > columns:
                lines.append(line.rstrip())
                line, used = "", 0
                if c == " ":
                    continue
            line, used = line + c, used + width(c)
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], columns: int = 110) -> str:
    """A plain-text table; cells wider than their share of the line are wrapped."""
    texts = [[str(cell) for cell in row] for row in [head, *rows]]
    count = len(head)
    wants = [max(width(row[i]) for row in texts) for i in range(count)]
    available = columns - 3 * (count - 1)
    while sum(wants) > available:
        wants[wants.index(max(wants))] -= 1
    lines = []
    for n, row in enumerate(texts):
        cells = [wrap(cell, want) for cell, want in zip(row, wants, strict=True)]
        for k in range(max(map(len, cells))):
            parts = [cell[k] if k < len(cell) else "" for cell in cells]
            lines.append("   ".join(part + " " * (want - width(part)) for part, want in zip(parts, wants, strict=True)).rstrip())
        if n == 0:
            lines.append("   ".join("-" * want for want in wants))
        elif any(len(cell) > 1 for cell in cells) and n < len(texts) - 1:
            lines.append("")
    return "\n".join(lines)
