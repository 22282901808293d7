"""The side of a bilingual file that is the user's text, according to the languages of the file and of the project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from engine.corpora.formats.inline import Flow
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.xmlstream import Handler, parse, xml_encoding
from engine.corpora.language import base_language, language_name
from engine.errors import CorpusError

NO_TRANSLATION = "no translation"
OTHER_LANGUAGES = "in other languages"
plain_language = lru_cache(maxsize=512)(base_language)


class Sides:
    """Turns units with a source and a target into records, and counts the languages that the file states."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.language = plain_language(request.language)
        self.source = plain_language(request.source_language) if request.source_language else ""
        self.stated_languages: Counter[str] = Counter()

    def record(
        self, line: int, source: str | None, target: str | None, source_code: str, target_code: str, domain: str = ""
    ) -> Record | SkippedLine:
        """The record of a unit, with sides swapped if the file's direction is opposite; an unstated target is the project's."""
        from_, into = plain_language(source_code or ""), plain_language(target_code or "")
        for code, text in ((from_, source), (into, target)):
            if code and text and text.strip():
                self.stated_languages[code] += 1
        if into == self.language or (not into and from_ != self.language):
            if not target or not target.strip():
                return SkippedLine(line, NO_TRANSLATION, source or "")
            keep = source if source and source.strip() and self._wanted(from_) else None
            return Record(line, target, keep, domain)
        if from_ == self.language:
            if not source or not source.strip():
                return Record(line, "")
            other = target if target and target.strip() and into and self._wanted(into) else None
            return Record(line, source, other, domain)
        return SkippedLine(line, OTHER_LANGUAGES, target or source or "")

    def _wanted(self, code: str) -> bool:
        return not self.source or not code or code == self.source

    def hint(self) -> str:
        """The languages of the file, for the message that nothing in it fits; empty if unstated or if the target is among them."""
        if not self.stated_languages or self.language in self.stated_languages:
            return ""
        names = ", ".join(language_name(code) for code, _ in self.stated_languages.most_common(6))
        return f"the file says that it holds {names}, not {language_name(self.language)}"


class UnitHandler(Handler[Record | SkippedLine]):
    """The common part of the TMX and XLIFF readers: the first element, the unit's line and the text being read."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.sides = Sides(request)
        self.limit = request.max_line_chars
        self.first = ""
        self.last_line = 0
        self.unit_line = 0
        self.flow: Flow | None = None

    def text(self, data: str) -> None:
        if self.flow is not None:
            self.flow.add(data)


def read_units(path: Path, handler: UnitHandler, root: str) -> Reading:
    """The units of an XML file. Reading raises CorpusError if its first element is not `root` (the format's name in lower case)."""
    with path.open("rb") as file:
        encoding = xml_encoding(file.read(1024))
    size = 0

    def count(read: int) -> None:
        nonlocal size
        size += read

    def items() -> Iterator[Record | SkippedLine]:
        with path.open("rb") as opened_file:
            yield from parse(opened_file, handler, str(path), encoding=encoding, read=count)
        if handler.first != root:
            raise CorpusError(
                "{path} is not a {format} file: its first element is {first}, not {root}.",
                path=path, format=root.upper(), first=handler.first or "missing", root=root,
            )  # fmt: skip

    sides = handler.sides
    return Reading(
        encoding, items(), lambda: handler.last_line, lambda: size, stated_languages=sides.stated_languages, hint=sides.hint
    )
