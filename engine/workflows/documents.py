"""Document translation within the same format: read, translate, rebuild; it can be stopped and resumed at any sentence."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.atomic_files import atomic_write, check_writable
from engine.core.progress import Progress
from engine.corpora.formats.documents.formats import MOST_BYTES, open_document
from engine.corpora.formats.documents.model import Context, DocumentError, DocumentOptions, Result, Unit
from engine.corpora.formats.tagged_text import text_of
from engine.errors import TailorError
from engine.serving.units.translate import TranslationCache, Translator, translate_units

log = logging.getLogger(__name__)
MOST_DOUBTS = 200  # maximum in a report; their number is always complete
EXCERPT = 160


@dataclass(frozen=True)
class DocumentReport:
    """The result of translating a document, as plain data for users and JSON."""

    title: str  # "Word document"
    units: int
    characters: int
    kept: dict[str, int]  # counts of what was left unchanged, by reason
    doubtful: int
    doubts: list[dict[str, str]] = field(default_factory=list)  # {"place", "source", "translation", "why"}
    segments: list[tuple[Unit, Result]] = field(default_factory=list, repr=False)

    def to_mapping(self) -> dict[str, object]:
        """A mapping that can be written as JSON, without the segments."""
        return {key: value for key, value in vars(self).items() if key != "segments"}


def translate_document(
    path: Path,
    output: Path,
    translator: Translator,
    *,
    options: DocumentOptions | None = None,
    progress: Progress | None = None,
    partial: Path | None = None,
    name: str = "",
    most_bytes: int = MOST_BYTES,
) -> DocumentReport:
    """Translate a document and write it in the same format.

    `partial` is a file that stores finished sentences: after a stop, the same call resumes from it; it is removed at the end.
    `name` is the document's name in messages; its extension determines the format. Raises DocumentError, also if the document
    cannot be rebuilt, StorageError, and Cancelled when `progress` requests it, with nothing written to `output`.
    """
    progress = progress or Progress()
    progress.begin("Reading the document")
    check_writable(output, "the translation")
    context = Context(name or path.name, translator.source, translator.target, options or DocumentOptions())
    document = open_document(path, context, most_bytes=most_bytes)
    finished = TranslationCache(partial, translator.key())
    results = document.checked(translate_units(document.units, translator, finished, progress))
    progress.check()
    try:
        data = document.build(results)
    except TailorError:
        raise
    except Exception as error:
        log.exception("a document was translated and could not be rebuilt")
        raise DocumentError(
            "{name} was translated, but the document could not be reassembled ({kind}: {error}). The "
            "translations are kept, so trying again is quick; please report this.",
            name=context.name, kind=type(error).__name__, error=error,
        ) from error  # fmt: skip
    with atomic_write(output, "the translation") as temporary:
        temporary.write_bytes(data)
    if partial is not None:
        partial.unlink(missing_ok=True)
    doubts = [
        {"place": unit.location, "source": _excerpt(unit.text), "translation": _excerpt(text_of(result.parts)), "why": result.doubt}
        for unit, result in zip(document.units, results, strict=True)
        if result.doubt
    ]
    return DocumentReport(
        title=document.title,
        units=len(document.units),
        characters=sum(len(unit.text) for unit in document.units),
        kept=dict(document.skipped),
        doubtful=len(doubts),
        doubts=doubts[:MOST_DOUBTS],
        segments=list(zip(document.units, results, strict=True)),
    )


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else flat[: EXCERPT - 2] + " …"
