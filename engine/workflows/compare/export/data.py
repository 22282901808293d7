"""A comparison as JSON: every figure as measured, and the sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator

from engine.workflows.compare.export.content import Content, flags_of

LINE = ("place", "source", "reference", "texts", "scores", "difference")


def as_json(content: Content) -> Iterator[str]:
    """One object: general facts, systems, figures, and `lines`, with one line of the file per sentence."""
    header = {name: getattr(content, name) for name in ("title", "source", "target", "base")} | {
        "created": content.created.isoformat(timespec="seconds"),
        "systems": [dict(system) for system in content.systems],
        "figures": dict(content.figures),
    }
    yield json.dumps(header, ensure_ascii=False, indent=2)[:-2] + ',\n  "lines": ['
    for number, line in enumerate(content.lines()):
        row = {name: getattr(line, name) for name in LINE} | {"flags": flags_of(line)}
        yield ("," if number else "") + "\n    " + json.dumps(row, ensure_ascii=False)
    yield "\n  ]\n}\n"
