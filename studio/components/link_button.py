"""A link that looks like the page's one filled button."""

from __future__ import annotations

from studio.components.templating import render


def link_button(address: str, words: str) -> str:
    """The link as HTML; `words` are in the reader's language."""
    return render("link_button.html", address=address, words=words)
