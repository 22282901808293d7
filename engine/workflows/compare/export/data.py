"""A comparison as JSON: every figure as it was measured, and the sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator

from engine.workflows.compare.export.content import Content


def as_json(content: Content) -> Iterator[str]:
    """One object: about, systems, figures, and `lines`, a line of the file for each sentence."""
    about = {
        "title": content.title,
        "source": content.source,
        "target": content.target,
        "base": content.base,
        "created": content.created.isoformat(timespec="seconds"),
        "systems": [dict(one) for one in content.systems],
        "figures": dict(content.figures),
    }
    yield json.dumps(about, ensure_ascii=False, indent=2)[:-2] + ',\n  "lines": ['
    for number, line in enumerate(content.lines()):
        row = {
            "place": line.place,
            "source": line.source,
            "reference": line.reference,
            "texts": line.texts,
            "scores": line.scores,
            "difference": line.difference,
        }
        yield ("," if number else "") + "\n    " + json.dumps(row, ensure_ascii=False)
    yield "\n  ]\n}\n"
