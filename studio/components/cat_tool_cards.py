"""The parts of the page CAT tools: the connection with its fields to copy, and a card for each tool; as safe HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from studio.components.cat_tool_guides import GUIDES, WAYS, Guide
from studio.components.layout import address
from studio.components.templating import render
from studio.services.cat_connections import BASE, DAYS, Connection

if TYPE_CHECKING:
    from engine.store import ProjectRow

MADE = "tailormt token create CAT"  # its usual scopes are read and translate


def connection_card(
    made: Connection, project: ProjectRow | None, plugins: Sequence[tuple[str, int]], default: str, choice: str
) -> str:
    """What every tool needs; `plugins` are (name, number), `default` is the name of the project's default plugin."""
    return render(
        "cat_connection.html", made=made, project=project, plugins=[(str(number), name) for name, number in plugins],
        default=default, choice=choice, base=BASE, command=MADE, days=DAYS,
    )  # fmt: skip


def tool_cards(made: Connection, project: ProjectRow | None) -> str:
    """A card for each tool."""
    return render(
        "cat_tools.html", guides=GUIDES, ways=WAYS, made=made, project=project.id if project else None,
        address=address, value=lambda text: filled(text, made), refused=lambda guide: refused(guide, made),
    )  # fmt: skip


def filled(text: str, made: Connection) -> str:
    """The value of a field: names between square brackets are those of the connection."""
    return re.sub(r"\[(\w+)]", lambda match: str(getattr(made, match[1])), text)


def refused(guide: Guide, made: Connection) -> bool:
    """Does this server ask for a key that the tool cannot send?"""
    return made.needs_token and not guide.sends_key
