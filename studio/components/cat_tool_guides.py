"""How each CAT tool is connected to this server: the file cat_tool_guides.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel

from studio.i18n.translate import mark

WAYS = {
    "direct": (mark("Connects directly"), "done"),
    "plugin": (mark("Connects through a plug-in"), "accent"),
    "files": (mark("Exchanges files"), ""),
}


class Field(BaseModel):
    """A field of the tool, or a command, and what to write there."""

    label: str
    value: str


class Step(BaseModel):
    """What to do; the fields to fill; the page of this studio where it is done, with the words of the link."""

    text: str
    fields: tuple[Field, ...] = ()
    page: str = ""
    link: str = ""


class Guide(BaseModel):
    """One tool; `sends_key` is False for one that cannot send any."""

    name: str
    slug: str
    way: str
    summary: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    sends_key: bool = True


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
GUIDES = tuple(Guide.model_validate(one) for one in _FILE["guides"])
