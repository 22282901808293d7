"""The first reading of a document, in a process of its own: how much of it is to be translated. What a document does to its
reader is known only afterwards, and the studio goes on whatever that is.

    python -m engine.corpora.formats.documents.characters < request.json
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core import limited_process
from engine.core.json_object import Json
from engine.core.limited_process import Limits, OverLimitError, TooLargeError, TooLongError
from engine.core.oom import out_of_memory
from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions
from engine.corpora.language import evenly_spaced
from engine.errors import TailorError, TransientError
from engine.messages import Message

SECONDS = 60.0
SECONDS_PER_MIB = 1.0  # besides
MEMORY = 2 << 30  # bytes
TURNS = threading.BoundedSemaphore(2)  # documents that are read at once
EXCERPT = 1000  # characters, of at most
PARTS = 40  # places


@dataclass(frozen=True)
class FirstReading:
    """The characters of a document that are translated, and an excerpt of them, from all over it, to tell its language by."""

    characters: int
    excerpt: str


def first_reading(file: Path, context: Context, most_bytes: int) -> FirstReading:
    """Raises DocumentError where the document cannot be read within the limits, and TransientError while others are read."""
    size = file.stat().st_size / 2**20 if file.is_file() else 0.0
    limits = Limits(SECONDS + SECONDS_PER_MIB * size, MEMORY)
    request = {
        "file": str(file.absolute()), "name": context.name, "source": context.source, "target": context.target,
        "options": context.options.to_mapping(), "most_bytes": most_bytes,
    }  # fmt: skip
    if not TURNS.acquire(timeout=SECONDS):
        raise TransientError("Other documents are being read. Try again in a minute.")
    try:
        (answer,) = limited_process.answers(__name__, request, limits)
        if answer.get("memory"):
            raise TooLargeError
    except TooLongError:
        raise DocumentError(
            "{context} could not be read within {seconds:.0f} s. Save it again in its program, or split it.",
            context=context.name, seconds=limits.seconds,
        ) from None  # fmt: skip
    except TooLargeError:
        raise DocumentError(
            "{context} needs more than {memory:,.0f} MiB of memory to be read. Save it again in its program, or split it.",
            context=context.name, memory=limits.memory / 2**20,
        ) from None  # fmt: skip
    except OverLimitError:
        raise DocumentError(
            "{context} ended the process that read it. Save it again in its program.", context=context.name
        ) from None
    finally:
        TURNS.release()
    if "error" in answer:
        raise DocumentError(Message.from_mapping(answer["error"]))
    return FirstReading(answer["characters"], answer["excerpt"])


def answers(request: Json) -> Iterator[Json]:
    """What the process answers: the first reading, or why there is none."""
    options = DocumentOptions.from_mapping(request["options"])
    context = Context(request["name"], request["source"], request["target"], options)
    try:
        document = open_document(Path(request["file"]), context, most_bytes=request["most_bytes"])
        parts = evenly_spaced([unit.text for unit in document.units], PARTS)
        excerpt = " ".join(part[: EXCERPT // len(parts)] for part in parts)
        yield {"characters": sum(len(unit.text) for unit in document.units), "excerpt": excerpt, "last": True}
    except TailorError as error:
        yield {"error": error.message.to_mapping(), "last": True}
    except Exception as error:
        if not out_of_memory(error):
            raise
        yield {"memory": True, "last": True}


if __name__ == "__main__":
    limited_process.serve(answers)
