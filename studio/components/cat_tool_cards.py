"""The parts of the page CAT tools: connection settings to copy and one card per tool, from cat_tool_guides.toml; all escaped."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from engine.store import ProjectRow
from studio.components.layout import address
from studio.components.templating import render
from studio.i18n.translate import mark
from studio.services.cat_connections import BASE, DAYS, Connection

WAYS = {
    "direct": (mark("Connects directly"), "done"),
    "plugin": (mark("Connects through a plug-in"), "accent"),
    "files": (mark("Exchanges files"), ""),
}


class Field(BaseModel):
    """A field of the tool, or a command, and its value."""

    label: str
    value: str


class Step(BaseModel):
    """An instruction, the fields to fill in, and the studio page where it is done, with the link text."""

    text: str
    fields: tuple[Field, ...] = ()
    page: str = ""
    link: str = ""


class Guide(BaseModel):
    """The guide to one tool; `sends_key` is False if it cannot send a key."""

    name: str
    slug: str
    protocol: str
    summary: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    sends_key: bool = True


_FILE = tomllib.loads(Path(__file__).with_name("cat_tool_guides.toml").read_text(encoding="utf-8"))
GUIDES = tuple(Guide.model_validate(guide) for guide in _FILE["guides"])


MADE = "tailormt token create CAT"  # the default scopes are read and translate


def connection_card(
    connection: Connection, project: ProjectRow | None, plugins: Sequence[tuple[str, int]], default: str, choice: str
) -> str:
    """The settings that every tool needs; `plugins` are (name, id), `default` is the name of the project's default plugin."""
    return render(
        "cat_connection.html", made=connection, project=project, plugins=[(str(number), name) for name, number in plugins],
        default=default, choice=choice, base=BASE, command=MADE, days=DAYS,
    )  # fmt: skip


def tool_cards(connection: Connection, project: ProjectRow | None) -> str:
    """One card per tool."""
    return render(
        "cat_tools.html", guides=GUIDES, ways=WAYS, made=connection, project=project.id if project else None,
        address=address, value=lambda text: fill_placeholders(text, connection), refused=lambda guide: refused(guide, connection),
    )  # fmt: skip


def fill_placeholders(text: str, connection: Connection) -> str:
    """The value of a field, with attribute names of the connection in square brackets replaced by their values."""
    return re.sub(r"\[(\w+)]", lambda match: str(getattr(connection, match[1])), text)


def refused(guide: Guide, connection: Connection) -> bool:
    """Whether this server requires a key that the tool cannot send."""
    return connection.needs_token and not guide.sends_key
