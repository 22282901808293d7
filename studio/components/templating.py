"""HTML from `templates/*.html` (Jinja2, everything escaped) and scripts from `static/*.js`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from studio.i18n.translate import tr, translate_message, trc, trn

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
STATIC = Path(__file__).resolve().parents[1] / "static"
PIECES = ("tag", "link_button", "card", "empty", "card_title", "quiet_line", "link_line", "note", "bar", "figure", "bars", "copied")


@cache
def _environment() -> Environment:
    from studio.components.html import lang_attribute, number, size

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {
        "tr": tr,
        "trc": trc,
        "trn": trn,
        "translate_message": translate_message,
        "number": number,
        "size": size,
        "lang_attribute": lang_attribute,
    }
    pieces = environment.get_template("pieces.html").module
    environment.globals |= {name: getattr(pieces, name) for name in PIECES}
    return environment


def piece(name: str, *values: object) -> str:
    """The HTML of a macro in `pieces.html`; templates call these macros by name."""
    macro: Any = _environment().globals[name]
    return str(macro(*values))


def render(template: str, **values: Any) -> str:
    """The HTML of a template. All values are escaped except `markupsafe.Markup`."""
    return _environment().get_template(template).render(**values)


@cache
def script(name: str) -> str:
    """The text of a script in `static`."""
    return (STATIC / name).read_text(encoding="utf-8")
