"""TBX: the exchange format of termbases, version 3 (`tbx`, `conceptEntry`) and version 2 (`martif`, `termEntry`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core.languages import same_language
from engine.corpora.formats.language_sides import plain_language
from engine.corpora.formats.xmlstream import XML_LANG, Handler, local_name, parse, xml_encoding
from engine.corpora.language import language_name
from engine.errors import CorpusError
from engine.messages import Message

ROOTS = ("tbx", "martif")
CONCEPTS = ("conceptEntry", "termEntry")
LANGUAGES = ("langSec", "langSet")
STATUS = ("administrativestatus", "normativeauthorization")
DISCOURAGED = ("deprecated", "superseded", "obsolete", "forbidden", "notrecommended")
MOST_CHARACTERS = 500  # of one term or note; longer terms are left out


@dataclass(frozen=True)
class ConceptTerm:
    """A term of a concept, its language as written in the file, and its status, such as `preferredTerm-admn-sts`."""

    text: str
    language: str
    status: str = ""

    @property
    def rank(self) -> int | None:
        """0 for a preferred term, None for a discouraged one, 1 for any other."""
        status = self.status.casefold().replace(" ", "").replace("-", "")
        if status.startswith(DISCOURAGED):
            return None
        return 0 if status.startswith("preferred") else 1


def is_tbx(path: Path) -> bool:
    """Whether a file is TBX, by its ending or its first characters."""
    if path.suffix.lower() == ".tbx":
        return True
    with path.open("rb") as file:
        head = file.read(400)
    text = head.decode(xml_encoding(head), "replace").lstrip("\ufeff \t\r\n")
    return text.startswith(("<?xml", "<!DOCTYPE", *(f"<{root}" for root in ROOTS)))


def read_tbx(path: Path, language: str, source_language: str = "") -> Iterator[tuple[str, str]]:
    """(source term, target term) of each concept: every source term with the best target term that is not discouraged.

    Languages are compared without region, but the term in the exact language is preferred, then the one marked as preferred,
    then the first. The source term is "" if no source language is given. Raises CorpusError if the XML is damaged or declares
    entities, if it is not TBX, or if no concept has usable terms.
    """
    with path.open("rb") as file:
        encoding = xml_encoding(file.read(1024))
    handler = Concepts()
    languages: Counter[str] = Counter()
    any_pair = False
    with path.open("rb") as file:
        for concept in parse(file, handler, path.name, encoding=encoding):
            languages.update({plain_language(term.language) for term in concept})
            for pair in pairs_of(concept, language, source_language):
                any_pair = True
                yield pair
    if handler.root not in ROOTS:
        raise CorpusError(
            "{file} is not a TBX file: its first element is {first}, not tbx or martif.",
            file=path.name, first=handler.root or "missing",
        )  # fmt: skip
    if any_pair:
        return
    if not languages:
        raise CorpusError("{file} contains no terms.", file=path.name)
    other = Message(language_name(languages.most_common(1)[0][0]))
    target = Message(language_name(language))
    if plain_language(language) not in languages:
        raise CorpusError(
            "{file} has no terms in {language}; most of its terms are in {other}.", file=path.name, language=target, other=other
        )
    raise CorpusError(
        "{file} has no concept with a term in {source} and one in {language} that may be used.",
        file=path.name, source=Message(language_name(source_language)), language=target,
    )  # fmt: skip


def pairs_of(concept: list[ConceptTerm], language: str, source_language: str) -> list[tuple[str, str]]:
    """The pairs of one concept, as in `read_tbx`."""
    targets = [term for term in concept if plain_language(term.language) == plain_language(language)]
    usable = [(rank, _distance(term, language), term) for term in targets if (rank := term.rank) is not None]
    if not usable:
        return []
    target = min(usable, key=lambda item: item[:2][::-1])[2].text
    if not source_language:
        return [("", target)]
    sources = [term for term in concept if plain_language(term.language) == plain_language(source_language)]
    return [(source, target) for source in dict.fromkeys(term.text for term in sources)]


def _distance(term: ConceptTerm, language: str) -> int:
    """How far a term's language is from the project's: 0, 1 and 2 for `zh-CN`, `zh` and `zh-TW` in a project for `zh-CN`."""
    if term.language.replace("_", "-").casefold() == language.replace("_", "-").casefold():
        return 0
    return 1 if same_language(term.language, language) else 2


class Concepts(Handler[list[ConceptTerm]]):
    """Handles one concept at a time. A note belongs to the preceding term, in both `tig` and `termSec`."""

    def __init__(self) -> None:
        super().__init__()
        self.root = ""
        self.language = ""
        self.concept: list[ConceptTerm] = []
        self.parts: list[str] | None = None  # of the term or status being read
        self.size = 0
        self.depth = 0  # of elements inside it
        self.kind = ""
        self.last_added = False  # whether the last term read is in the concept

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if self.parts is not None:
            self.depth += 1
            return
        if not self.root:
            self.root = tag
        if tag in CONCEPTS:
            self.concept, self.language = [], ""
        elif tag in LANGUAGES:
            self.language = attributes.get(XML_LANG) or attributes.get("lang") or ""
        elif tag == "term":
            self._read("term")
        elif (attributes.get("type", "") if tag == "termNote" else tag).casefold() in STATUS:
            self._read("status")

    def _read(self, kind: str) -> None:
        self.kind, self.parts, self.size, self.depth = kind, [], 0, 0

    def text(self, data: str) -> None:
        if self.parts is not None:
            self.size += len(data)
            self.parts.append(data[:MOST_CHARACTERS])
            del self.parts[MOST_CHARACTERS:]

    def end(self, name: str) -> None:
        if self.parts is not None:
            if self.depth:
                self.depth -= 1
                return
            text = " ".join("".join(self.parts).split()) if self.size <= MOST_CHARACTERS else ""
            self.parts = None
            self._add(text)
        elif local_name(name) in CONCEPTS and self.concept:
            self.items.append(self.concept)
            self.concept = []

    def _add(self, text: str) -> None:
        if self.kind == "term":
            self.last_added = bool(text and self.language)
            if self.last_added:
                self.concept.append(ConceptTerm(text, self.language))
        elif self.last_added and self.concept:
            last = self.concept[-1]
            self.concept[-1] = ConceptTerm(last.text, last.language, text)
