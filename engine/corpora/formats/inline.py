"""The text of one <seg>, <source> or <target> while it is read: characters, and inline elements as tags."""

from __future__ import annotations

LINE_BREAKS = ("lb", "x-lb", "x-br", "br", "fmt:lb")


class Flow:
    """Collects one flow of text, at most `limit` characters; longer text is truncated, which `cut` reports.

    `pieces` are the parts inside numbered segment marks (XLIFF's `<mrk mtype="seg" mid="…">`), by their number.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.parts: list[str] = []
        self.size = 0
        self.cut = False
        self.hidden = 0  # depth inside elements whose content is code
        self.open: list[tuple[str, bool]] = []  # what closing each open element writes, and whether it hid its content
        self.pieces: dict[str, list[str]] = {}
        self.piece: list[str] | None = None

    def add(self, text: str) -> None:
        """Characters."""
        if self.hidden or not text:
            return
        self._write(text)

    def tag(self, text: str) -> None:
        """A tag that represents an inline element."""
        if not self.hidden:
            self._write(text)

    def _write(self, text: str) -> None:
        self.size += len(text)
        if self.size > self.limit:
            self.cut = True
            return
        self.parts.append(text)
        if self.piece is not None:
            self.piece.append(text)

    def begin(self, before: str = "", after: str = "", *, hides: bool = False) -> None:
        """An inline element begins: `before` is written now, `after` when it ends; one that hides has code inside."""
        self.tag(before)
        self.open.append((after, hides))
        self.hidden += hides

    def end(self) -> None:
        """The innermost inline element ends."""
        after, hid = self.open.pop()
        self.hidden -= hid
        self.tag(after)

    def begin_piece(self, number: str) -> None:
        """A numbered segment begins; the ones before it have ended."""
        self.piece = self.pieces.setdefault(number, [])
        self.open.append(("", False))

    @property
    def text(self) -> str:
        return "".join(self.parts)


def alone(number: str, kind: str = "") -> str:
    """The tag of an element without content; a line break where its type says so."""
    return "<br/>" if kind.lower() in LINE_BREAKS else f'<x id="{_safe(number)}"/>'


def opened(number: str) -> str:
    return f'<g id="{_safe(number)}">'


def closed(number: str) -> str:
    return f'</g id="{_safe(number)}">'


def _safe(number: str) -> str:
    return "".join(c for c in number if c.isalnum() or c in "._-")[:60] or "0"
