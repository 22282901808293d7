"""The text of one <seg>, <source> or <target> while it is read: characters, and inline elements as tags."""

from __future__ import annotations

LINE_BREAKS = ("lb", "x-lb", "x-br", "br", "fmt:lb")


class Flow:
    """Collects one flow of text; `cut` reports that it is longer than `limit` characters and therefore incomplete.

    `pieces` are the parts inside numbered segment marks (XLIFF's `<mrk mtype="seg" mid="…">`), by number.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.parts: list[str] = []
        self.size = 0
        self.cut = False
        self.hidden = 0  # depth inside elements whose content is code
        self.open: list[tuple[str, bool]] = []  # per open element: its end tag and whether it hides its content
        self.pieces: dict[str, list[str]] = {}
        self.piece: list[str] | None = None

    def add(self, text: str) -> None:
        """Add characters."""
        if self.hidden or not text:
            return
        self._write(text)

    def tag(self, text: str) -> None:
        """Add a tag that represents an inline element."""
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
        """Begin an inline element: `before` is written now, `after` at its end; `hides` means that its content is code."""
        self.tag(before)
        self.open.append((after, hides))
        self.hidden += hides

    def end(self) -> None:
        """End the innermost inline element."""
        after, hid = self.open.pop()
        self.hidden -= hid
        self.tag(after)

    def begin_piece(self, number: str) -> None:
        """Begin a numbered segment, which ends the one before."""
        self.piece = self.pieces.setdefault(number, [])
        self.open.append(("", False))

    @property
    def text(self) -> str:
        return "".join(self.parts)


def alone(number: str, kind: str = "") -> str:
    """The tag of an element without content, or of a line break if its type is one."""
    return "<br/>" if kind.lower() in LINE_BREAKS else f'<x id="{_safe(number)}"/>'


def opened(number: str) -> str:
    return f'<g id="{_safe(number)}">'


def closed(number: str) -> str:
    return f'</g id="{_safe(number)}">'


def _safe(number: str) -> str:
    return "".join(c for c in number if c.isalnum() or c in "._-")[:60] or "0"
