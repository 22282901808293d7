"""Tab-separated text with a head, one sentence a line: for a spreadsheet or a script."""

from __future__ import annotations

from collections.abc import Iterator

from engine.comparison.export.content import Content

__all__ = ["as_tsv"]


def as_tsv(content: Content) -> Iterator[str]:
    """Source, reference where there are some, and each system; white space within a text becomes one space."""
    heads = ["source", *(["reference"] if content.references else [])]
    heads += [content.label(i) for i in range(len(content.systems))]
    yield "\t".join(map(flat, heads)) + "\n"
    for line in content.lines():
        cells = [line.source, *([line.reference] if content.references else []), *line.texts]
        yield "\t".join(map(flat, cells)) + "\n"


def flat(text: str | None) -> str:
    return " ".join((text or "").split())
