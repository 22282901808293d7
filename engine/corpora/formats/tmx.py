"""TMX 1.1 to 1.4b: the exchange format of translation memories."""

from __future__ import annotations

from pathlib import Path

from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.inline import Flow, alone, closed, opened
from engine.corpora.formats.language_sides import OTHER_LANGUAGES, UnitHandler, plain_language, read_units
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.xmlstream import XML_LANG, local_name

DOMAINS = ("domain", "x-domain", "subject", "x-subject")


def read_tmx(path: Path, request: Request) -> Reading:
    """Reader of TMX; from each unit, the variants in the project's two languages are read."""
    return read_units(path, Tmx(request), "tmx")


class Tmx(UnitHandler):
    """Handles one translation unit at a time."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.language = ""
        self.variants: list[tuple[str, int, Flow]] = []
        self.in_unit = False
        self.domain = ""
        self.domain_parts: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if self.flow is not None:
            self._inline(tag, attributes)
            return
        if not self.first:
            self.first = tag
        elif tag == "tu":
            self.in_unit, self.unit_line, self.variants, self.domain = True, self.line(), [], ""
        elif tag == "tuv":
            self.language = attributes.get(XML_LANG) or attributes.get("lang") or ""
        elif tag == "seg" and self.in_unit:
            self.flow = Flow(self.limit)
            self.variants.append((self.language, self.line(), self.flow))
        elif tag == "prop" and self.in_unit and attributes.get("type", "").casefold() in DOMAINS:
            self.domain_parts = []

    def _inline(self, tag: str, attributes: dict[str, str]) -> None:
        assert self.flow is not None
        number = attributes.get("x") or attributes.get("i") or ""
        if tag == "hi":
            self.flow.begin(opened(f"h{number}"), closed(f"h{number}"))
        elif tag == "bpt":
            self.flow.begin(opened(attributes.get("i", number)), hides=True)
        elif tag == "ept":
            self.flow.begin(closed(attributes.get("i", number)), hides=True)
        elif tag in ("ph", "it", "ut"):
            self.flow.begin(alone(f"{tag}{number}", attributes.get("type", "")), hides=True)
        else:  # sub is separate text, not part of this sentence; other elements are unknown
            self.flow.begin(hides=True)

    def end(self, name: str) -> None:
        if self.flow is not None:
            if self.flow.open:
                self.flow.end()
            else:
                self.flow = None
            return
        tag = local_name(name)
        if tag == "tu":
            self.in_unit = False
            self.items.append(self._unit())
        elif tag == "prop" and self.domain_parts is not None:
            self.domain, self.domain_parts = "".join(self.domain_parts), None
        self.last_line = self.line()

    def text(self, data: str) -> None:
        super().text(data)
        if self.flow is None and self.domain_parts is not None and len(self.domain_parts) < 20:
            self.domain_parts.append(data[:200])

    def _unit(self) -> Record | SkippedLine:
        for code, _, _ in self.variants:
            self.sides.stated_languages[plain_language(code)] += 1
        target = self._variant(self.sides.request.language)
        if target is None:
            text = self.variants[0][2].text if self.variants else ""
            return SkippedLine(self.unit_line, OTHER_LANGUAGES, text)
        _, line, flow = target
        source_language = self.sides.request.source_language
        if source_language:
            source = self._variant(source_language)
        else:
            other_variants = [variant for variant in self.variants if plain_language(variant[0]) != self.sides.language]
            source = other_variants[0] if len(other_variants) == 1 else None
        if flow.cut or (source and source[2].cut):
            return SkippedLine(line, TOO_LONG, flow.text)
        return Record(line, flow.text, source[2].text if source else None, self.domain)

    def _variant(self, language: str) -> tuple[str, int, Flow] | None:
        """The variant with the exact language code, otherwise the first in the same language."""
        matches = [variant for variant in self.variants if plain_language(variant[0]) == plain_language(language)]
        exact = [variant for variant in matches if variant[0].replace("_", "-").lower() == language.replace("_", "-").lower()]
        return next(iter([*exact, *matches]), None)
