"""The first reading of an untrusted document, in a separate process: how much text is to be translated.

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

EXCERPT = 1000  # characters of the excerpt, taken from at most
PARTS = 40  # units


@dataclass(frozen=True)
class FirstReading:
    """The number of characters to translate in a document, and an excerpt from all parts of it for identifying its language."""

    characters: int
    excerpt: str


def first_reading(file: Path, context: Context, most_bytes: int) -> FirstReading:
    """Read a document in a separate process. Raises DocumentError if that fails or exceeds limits, TransientError if too busy."""
    request = {
        "file": str(file.absolute()), "name": context.name, "source": context.source, "target": context.target,
        "options": context.options.to_mapping(), "most_bytes": most_bytes,
    }  # fmt: skip
    answer = answer_of(__name__, request, [file], DocumentError, name=context.name)
    return FirstReading(answer["characters"], answer["excerpt"])


def read(request: Json) -> Json:
    """The answer of the separate process to a request."""
    options = DocumentOptions.from_mapping(request["options"])
    context = Context(request["name"], request["source"], request["target"], options)
    document = open_document(Path(request["file"]), context, most_bytes=request["most_bytes"])
    parts = evenly_spaced([unit.text for unit in document.units], PARTS)
    excerpt = " ".join(part[: EXCERPT // len(parts)] for part in parts)
    return {"characters": sum(len(unit.text) for unit in document.units), "excerpt": excerpt}


if __name__ == "__main__":
    serve_one(read)
