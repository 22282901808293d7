"""XLIFF 1.0 to 1.2 (including the dialects of SDL, memoQ and Phrase) and 2.0 to 2.2: files in translation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.inline import Flow, alone, closed, opened
from engine.corpora.formats.language_sides import UnitHandler, read_units
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.xmlstream import local_name

NOT_DONE = "not translated yet"
NOT_MEANT = "not to be translated"
# States of an untranslated target in versions 1.2 and 2.
UNDONE = ("new", "needs-translation", "initial")
PARENTS = {"trans-unit": "1", "segment": "2"}


def read_xliff(path: Path, request: Request) -> Reading:
    """Reader of XLIFF; units with a translation are read, but not alternatives, notes and units marked as untranslated."""
    return read_units(path, Xliff(request), "xliff")


class Xliff(UnitHandler):
    """Handles one unit of version 1, or one segment of version 2, at a time."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.path: list[str] = []
        self.source_code = self.target_code = ""
        self.meant = True
        self.state = ""
        self.flows: dict[str, Flow] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if self.flow is not None:
            self._inline(tag, attributes)
            return
        parent = self.path[-1] if self.path else ""
        self.path.append(tag)
        if not self.first:
            self.first = tag
        if tag in ("xliff", "file"):
            self.source_code = attributes.get("source-language") or attributes.get("srcLang") or self.source_code
            self.target_code = attributes.get("target-language") or attributes.get("trgLang") or self.target_code
        elif tag == "unit":
            self.meant = attributes.get("translate") != "no"
        elif tag in PARENTS:
            self.unit_line, self.flows, self.state = self.line(), {}, attributes.get("state", "")
            if tag == "trans-unit":
                self.meant = attributes.get("translate") != "no"
        elif tag in ("source", "seg-source", "target") and parent in PARENTS:
            self.flow = self.flows[tag] = Flow(self.limit)
            self.state = attributes.get("state", self.state)

    def _inline(self, tag: str, attributes: dict[str, str]) -> None:
        flow = self.flow
        assert flow is not None
        number = attributes.get("rid") or attributes.get("startRef") or attributes.get("id") or ""
        kind = attributes.get("ctype") or attributes.get("subType") or ""
        if tag == "mrk" and attributes.get("mtype") == "seg" and attributes.get("mid"):
            flow.begin_piece(attributes["mid"])
        elif tag in ("g", "pc"):
            flow.begin(opened(number), closed(number))
        elif tag in ("bx", "bpt", "sc"):
            flow.begin(opened(number), hides=True)
        elif tag in ("ex", "ept", "ec"):
            flow.begin(closed(number), hides=True)
        elif tag in ("x", "ph", "it"):
            flow.begin(alone(number, kind), hides=True)
        elif tag == "cp":
            flow.begin(hides=True)  # a character that XML cannot represent, hence not part of a sentence
        elif tag in ("mrk", "sm", "em"):
            flow.begin()
        else:
            flow.begin(hides=True)

    def end(self, name: str) -> None:
        if self.flow is not None and self.flow.open:
            self.flow.end()
            return
        if self.flow is not None:
            self.flow = None
        tag = self.path.pop()
        if tag in PARENTS:
            self.items.extend(self._unit())
        self.last_line = self.line()

    def _unit(self) -> Iterator[Record | SkippedLine]:
        source, target = self.flows.get("source"), self.flows.get("target")
        text = next((flow.text for flow in (target, source) if flow), "")
        if not self.meant:
            yield SkippedLine(self.unit_line, NOT_MEANT, text)
        elif any(flow.cut for flow in self.flows.values()):
            yield SkippedLine(self.unit_line, TOO_LONG, text)
        else:
            marked = self.flows.get("seg-source")
            pairs: list[tuple[str | None, str | None]] = [(source.text if source else None, target.text if target else None)]
            if marked and target and len(target.pieces) > 1 and set(target.pieces) <= set(marked.pieces):
                pairs = [("".join(marked.pieces[key]), "".join(target.pieces[key])) for key in target.pieces]
            for left, right in pairs:
                record = self.sides.record(self.unit_line, left, right, self.source_code, self.target_code)
                if self.state in UNDONE and isinstance(record, Record) and record.text == right:
                    yield SkippedLine(self.unit_line, NOT_DONE, right or "", record)
                else:
                    yield record
