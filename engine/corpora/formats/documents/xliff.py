"""XLIFF 1.2 (with Trados' dialect) and 2.x: sources are translated into targets with states; approved targets are preserved."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from engine.core.languages import language_message, primary_language
from engine.core.numerals import whole_number
from engine.corpora.formats.documents.files import parse_xml, xml_bytes
from engine.corpora.formats.documents.model import Context, Document, DocumentError, Result, Unit, together
from engine.corpora.formats.documents.placeholders import find_placeholders
from engine.corpora.formats.documents.xmltext import Content, Role, local, space_preserved
from engine.corpora.formats.tagged_text import text_of
from engine.messages import Message

TODO = {"new", "needs-translation", "initial"}  # states of targets that need a translation
DONE = {"final", "signed-off", "reviewed"}
KINDS = ("plain", "qt", "variable", "numbered")
BREAKS = re.compile(r"(?:<br\s*/?>|\\n|\n|&lt;br\s*/?&gt;)", re.IGNORECASE)
SIZES = "{urn:oasis:names:tc:xliff:sizerestriction:2.0}"  # namespace of XLIFF 2's size restriction module
CLOSES = {"ex": "x", "ept": "t", "ec": "c", "em": "m"}  # closing element: last letter of its opening element


@dataclass
class XliffUnit:
    """One text: its source, and functions that return the element for its translation and set its state."""

    content: Content
    fill: Callable[[], Any]  # creates the target element if necessary
    mark: Callable[[Result], None]
    unit: Any  # the unit's element in the file
    limit: int | None = None  # most characters of the unit's translation


class Xliff(Document):
    """An XLIFF file."""

    title: ClassVar[str] = "XLIFF file"

    def __init__(self, data: bytes, context: Context) -> None:
        super().__init__(context)
        self.data = data
        self.tree = parse_xml(data, context.name)
        self.entries: list[XliffUnit] = []
        self.sizes: Counter[int] = Counter()  # characters of translations kept in a unit, by the id() of its element
        root = self.tree.getroot()
        if local(root) != "xliff":
            raise DocumentError(
                "{context} is not an XLIFF file: its first element is <{local}>.", context=context.name, local=local(root)
            )
        self.space = root.tag.rpartition("}")[0] + "}" if root.tag.startswith("{") else ""
        if str(root.get("version", "1.2")).startswith("2"):
            self._check(root.get("srcLang"), root.get("trgLang"))
            self._read_two(root)
            if self.entries and not root.get("trgLang"):
                root.set("trgLang", context.target)
        else:
            for file in root.iter(f"{self.space}file"):
                self._check(file.get("source-language"), file.get("target-language"))
                before = len(self.entries)
                self._read_one(file)
                if len(self.entries) > before and not file.get("target-language"):
                    file.set("target-language", context.target)

    @classmethod
    def read(cls, path: Path, context: Context) -> Self:
        return cls(path.read_bytes(), context)

    def _check(self, source: str | None, target: str | None) -> None:
        if source and primary_language(source) != primary_language(self.context.source):
            raise DocumentError(
                "{context} is marked for translation from {found}, not from {wanted}. Choose a base or project of its "
                "languages.",
                context=self.context.name, found=language_message(source), wanted=language_message(self.context.source),
            )  # fmt: skip
        if target and primary_language(target) != primary_language(self.context.target):
            raise DocumentError(
                "{context} is marked for translation into {found}, not into {wanted}. Choose a base or project of its "
                "languages.",
                context=self.context.name, found=language_message(target), wanted=language_message(self.context.target),
            )  # fmt: skip

    # -- 1.2

    def _read_one(self, file: Any) -> None:
        for number, unit in enumerate(file.iter(f"{self.space}trans-unit"), 1):
            position = f"unit {unit.get('id') or number}"
            source = unit.find(f"{self.space}source")
            if source is None:
                continue
            if not _translatable(unit):
                self.skipped[Message('translate="no"')] += 1
                continue
            target = unit.find(f"{self.space}target")
            limit = whole_number(unit.get("maxwidth"), 1) if unit.get("size-unit") == "char" else None
            segmented = unit.find(f"{self.space}seg-source")
            if segmented is not None and any(_is_segment(mrk) for mrk in segmented.iter(f"{self.space}mrk")):
                if unit.get("approved") == "yes" and not self.context.options.retranslate:
                    self.skipped[Message("approved before")] += 1
                else:
                    self._read_segments(unit, segmented, position, limit)
                continue
            state = None if target is None else target.get("state")
            if not self._wanted(unit.get("approved"), target, source, state):
                continue
            self._add(source, position, self._target_maker(unit, source), self._marker(unit), unit, limit)

    def _read_segments(self, unit: Any, segmented: Any, location: str, limit: int | None) -> None:
        """Add the segments of a unit that is already divided into numbered segments; each is translated separately."""
        cache: dict[str, object] = {}
        target = unit.find(f"{self.space}target")
        old_marks = [] if target is None else [copy.deepcopy(mrk) for mrk in target.iter(f"{self.space}mrk")]
        old_by_id = {mrk.get("mid"): mrk for mrk in old_marks if _is_segment(mrk)}

        def whole() -> Any:
            if "target" not in cache:
                new_target = self._target_maker(unit, segmented)()
                new_target.text = segmented.text
                new_target[:] = [copy.deepcopy(child) for child in segmented]
                for mrk in new_target.iter(f"{self.space}mrk"):
                    old = old_by_id.get(mrk.get("mid"))
                    if _is_segment(mrk) and old is not None and _text(old):
                        mrk.text, mrk[:] = old.text, [copy.deepcopy(child) for child in old]
                cache["target"] = new_target
            return cache["target"]

        for segment in segmented.iter(f"{self.space}mrk"):
            if not _is_segment(segment):
                continue
            number = segment.get("mid")
            old = old_by_id.get(number)
            if old is not None and _text(old) and not self.context.options.retranslate:
                self.skipped[Message("translated before")] += 1
                self.sizes[id(unit)] += len(_text(old))
                continue

            def fill(number: str | None = number) -> Any:
                return next(mrk for mrk in whole().iter(f"{self.space}mrk") if mrk.get("mid") == number)

            self._add(segment, f"{location}, segment {number}", fill, self._marker(unit, number), unit, limit)

    def _target_maker(self, unit: Any, after: Any) -> Callable[[], Any]:
        def make() -> Any:
            target = unit.find(f"{self.space}target")
            if target is None:
                target = after.makeelement(f"{self.space}target")
                target.tail = after.tail
                after.addnext(target)
                target.tail, after.tail = after.tail, after.tail
            return target

        return make

    def _marker(self, unit: Any, number: str | None = None) -> Callable[[Result], None]:
        def mark(result: Result) -> None:
            target = unit.find(f"{self.space}target")
            definition = next(
                (element for element in unit.iter() if local(element) == "seg" and number and element.get("id") == number), None
            )
            if definition is not None:  # Trados stores states per segment
                definition.set("conf", "Draft")
                definition.set("origin", "mt")
            else:
                target.set("state", "needs-review-translation")
                target.set("state-qualifier", "mt-suggestion")
            if unit.get("approved"):
                unit.set("approved", "no")

        return mark

    # -- 2.x

    def _read_two(self, root: Any) -> None:
        for number, unit in enumerate(root.iter(f"{self.space}unit"), 1):
            data = {
                element.get("id"): "".join(element.itertext())
                for element in unit.findall(f"{self.space}originalData/{self.space}data")
            }
            for segment in unit.findall(f"{self.space}segment"):
                source, target = segment.find(f"{self.space}source"), segment.find(f"{self.space}target")
                if source is None:
                    continue
                if not _translatable(unit):
                    self.skipped[Message('translate="no"')] += 1
                    continue
                if not self._wanted(None, target, source, segment.get("state")):
                    self.sizes[id(unit)] += len(_text(target))
                    continue
                position = f"unit {unit.get('id') or number}"

                def mark(result: Result, segment: Any = segment) -> None:
                    segment.set("state", "translated")
                    segment.set("subState", "tailormt:needs-review")

                self._add(source, position, self._target_maker(segment, source), mark, unit, _size_limit(unit), data)

    # -- both

    def _wanted(self, approved: str | None, target: Any, source: Any, state: str | None) -> bool:
        """Whether this is to be translated; if not, because it has a translation to keep, it is counted as skipped."""
        if target is None or not _text(target) or self.context.options.retranslate:
            return True
        if approved == "yes" or state in DONE:
            self.skipped[Message("approved before")] += 1
            return False
        if state in TODO or (_text(target) == _text(source) and state is None):
            return True
        self.skipped[Message("translated before")] += 1
        return False

    def _add(
        self, source: Any, location: str, fill: Callable[[], Any], mark: Callable[[Result], None], unit: Any,
        limit: int | None = None, data: dict[str | None, str] | None = None,
    ) -> None:  # fmt: skip
        content = Content(source, lambda element: _role(element, data or {}))
        if not text_of(content.parts).strip():
            return
        self.entries.append(XliffUnit(content, fill, mark, unit, limit))
        self.units.append(
            Unit(
                content.parts,
                location,
                words=frozenset(content.words | _wordlike(content, data or {})),
                breaks=frozenset(content.breaks),
                placeholders=KINDS,
                shortcut="&",
                keep_lines=space_preserved(source),
                keep_tabs=space_preserved(source),
            )
        )

    def checked(self, results: Sequence[Result]) -> list[Result]:
        """Add doubts to results if the translation of a unit, including all its segments, is too long."""
        sizes = Counter(self.sizes)
        for entry, result in zip(self.entries, results, strict=True):
            sizes[id(entry.unit)] += len(text_of(result.parts))
        return [
            replace(result, doubt=together(result.doubt, Message("It is longer than {limit:,} characters.", limit=entry.limit)))
            if entry.limit is not None and sizes[id(entry.unit)] > entry.limit
            else result
            for entry, result in zip(self.entries, results, strict=True)
        ]

    def build(self, results: Sequence[Result | None]) -> bytes:
        changed = False
        for entry, result in zip(self.entries, results, strict=True):
            if result is None:
                continue
            entry.content.write(entry.fill(), result.parts, copies=True)
            entry.mark(result)
            changed = True
        return xml_bytes(self.tree, self.data) if changed else self.data


def _text(element: Any) -> str:
    return "".join(element.itertext()).strip()


def _is_segment(mark: Any) -> bool:
    return bool(mark.get("mtype") == "seg")


def _translatable(unit: Any) -> bool:
    """Whether a unit is to be translated, by the nearest `translate` attribute of the unit or its ancestors."""
    for element in (unit, *unit.iterancestors()):
        text = element.get("translate")
        if text:
            return bool(text != "no")
    return True


def _size_limit(unit: Any) -> int | None:
    """The most characters of a unit in XLIFF 2: the nearest `max` or `min,max`, if the file counts code points."""
    around = (unit, *unit.iterancestors())
    profiles = next((profile for element in around for profile in element.findall(f"{SIZES}profiles")), None)
    if profiles is None or profiles.get("generalProfile") != "xliff:codepoints":
        return None
    text = next((restriction for element in around if (restriction := element.get(f"{SIZES}sizeRestriction"))), "")
    return whole_number(text.rpartition(",")[2], 1)


def _native(element: Any, data: dict[str | None, str]) -> str:
    """The tag in the original document, as far as the file states it."""
    text = element.get("equiv-text") or element.get("equiv") or element.get("disp") or data.get(element.get("dataRef"))
    return str(text or "".join(element.itertext()))


def _role(element: Any, data: dict[str | None, str]) -> Role:
    name = local(element)
    if name in ("g", "pc"):
        return Role("pair")
    if name == "mrk":
        closed = element.get("mtype") == "protected" or element.get("translate") == "no"
        return Role("word" if closed else "pair")
    if name in ("bx", "bpt", "sc", "sm") and element.get("isolated") != "yes":
        return Role("open", name[-1:] + str(element.get("rid") or element.get("id")))
    if name in CLOSES and element.get("isolated") != "yes":
        return Role("close", CLOSES[name] + str(element.get("rid") or element.get("startRef") or element.get("id")))
    if name in ("x", "ph", "it"):
        kind = f"{element.get('ctype') or ''} {element.get('subType') or ''}"
        native = _native(element, data).strip()
        if "lb" in re.split(r"[\s:-]", kind) or BREAKS.fullmatch(native):
            return Role("break")
        if native and any(native == native[a:b] for a, b in find_placeholders(native, KINDS)):
            return Role("word")
    return Role("alone")


def _wordlike(content: Content, data: dict[str | None, str]) -> set[int]:
    """The ids of standalone tags used like words: separated by spaces from the adjacent text, of which there is some."""
    results = set()
    elements = content.elements
    for index, part in enumerate(content.parts):
        if isinstance(part, str) or part.id not in elements or part.id in content.words | content.breaks:
            continue
        element = elements[part.id]
        if local(element) not in ("x", "ph") or "<" in _native(element, data) or element.get("ctype") == "image":
            continue
        before = content.parts[index - 1] if index else ""
        after = content.parts[index + 1] if index + 1 < len(content.parts) else ""
        if not (isinstance(before, str) and isinstance(after, str)) or not (before + after).strip():
            continue
        if not before[-1:].isalnum() and not after[:1].isalnum() and (before[-1:].isspace() or after[:1].isspace()):
            results.add(part.id)
    return results
