"""The first reading of an untrusted document, in a process of its own: how much of it is to be translated.

python -m engine.corpora.formats.documents.characters < request.json
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.core.json_object import Json
from engine.core.limited_process import answer_of, serve_one
from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions
from engine.corpora.language import evenly_spaced

EXCERPT = 1000  # characters, of at most
PARTS = 40  # places


@dataclass(frozen=True)
class FirstReading:
    """The characters of a document that are translated, and an excerpt of them, from all over it, to tell its language by."""

    characters: int
    excerpt: str


def first_reading(file: Path, context: Context, most_bytes: int) -> FirstReading:
    """Raises DocumentError where the document cannot be read within the limits, and TransientError while others are read."""
    request = {
        "file": str(file.absolute()), "name": context.name, "source": context.source, "target": context.target,
        "options": context.options.to_mapping(), "most_bytes": most_bytes,
    }  # fmt: skip
    answer = answer_of(__name__, request, [file], DocumentError, name=context.name)
    return FirstReading(answer["characters"], answer["excerpt"])


def read(request: Json) -> Json:
    """What the process answers."""
    options = DocumentOptions.from_mapping(request["options"])
    context = Context(request["name"], request["source"], request["target"], options)
    document = open_document(Path(request["file"]), context, most_bytes=request["most_bytes"])
    parts = evenly_spaced([unit.text for unit in document.units], PARTS)
    excerpt = " ".join(part[: EXCERPT // len(parts)] for part in parts)
    return {"characters": sum(len(unit.text) for unit in document.units), "excerpt": excerpt}


if __name__ == "__main__":
    serve_one(read)
