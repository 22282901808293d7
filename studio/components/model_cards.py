"""Model cards on a page: an always visible licence line, and the whole card folded below it.

A card is untrusted Markdown. It is rendered on the server: HTML in it becomes text, images become their descriptions, and links
lead only to web pages, in a new window.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from engine.core.model_card import ModelCard
from studio.components.html import esc
from studio.components.templating import render
from studio.i18n.translate import tr

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

WEB = re.compile(r"https?://", re.IGNORECASE)
LONGEST = 60_000  # characters of a card that are shown


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])

    def image(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        return f"<span class=tm-quiet>[{esc(tokens[index].content or tr('picture'))}]</span>"

    def link(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        address = str(tokens[index].attrGet("href") or "")
        if not WEB.match(address):  # links to other files in the card's folder do not work here
            return "<a>"
        return f'<a href="{esc(address)}" target="_blank" rel="noopener noreferrer nofollow">'

    parser.add_render_rule("image", image)
    parser.add_render_rule("link_open", link)
    return parser


def render_markdown(text: str) -> str:
    """Safe HTML of a card's body, its headings lowered by two levels to fit below those of the page."""
    html = _parser().render(text[:LONGEST])
    return re.sub(r"<(/?)h([1-6])>", lambda m: f"<{m[1]}h{min(6, int(m[2]) + 2)}>", html)


def license_text(card: ModelCard) -> str:
    """The card's licence sentence, translated as far as the catalog has it."""
    match = re.match(r"(Licence|License): ", card.license_line)
    return tr("Licence: {name}", name=tr(card.license_line[match.end() :])) if match else tr(card.license_line)


def license_line(card: ModelCard) -> str:
    """The licence in one line, highlighted if it restricts use."""
    return render("licence.html", words=license_text(card), restricted=card.restricted)


def card_fold(card: ModelCard, label: str) -> str:
    """The whole card, folded; empty if it has no text."""
    body = re.sub(r"\A\s*+#\s++.*\n", "", card.body)  # drop the title, which the page shows already
    if not body.strip():
        return ""
    return render("model_card.html", label=label, body=Markup(render_markdown(body)))
