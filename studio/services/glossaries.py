"""Glossaries managed by clients of the DeepL-compatible interface: source and target terms for one or more language pairs.

Each is stored in a separate file and belongs to the account whose token created it; admins and local users see all of them.
A project token without an account sees the glossaries that such tokens created for the same project.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.actor import Forbidden
from engine.core.atomic_files import atomic_write
from engine.core.languages import same_language
from engine.corpora.terminology import lines_of
from engine.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from studio.services.service import Service

log = logging.getLogger(__name__)

MOST_CHARACTERS = 1_000_000  # of all entries of a glossary
MOST_GLOSSARIES = 1_000  # per account
MOST_NAME = 1_024
ID_SHAPE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FORMATS = ("tsv", "csv")


@dataclass
class Dictionary:
    """The entries for one language pair: {source term: target term}."""

    source: str
    target: str
    entries: dict[str, str]

    def is_for(self, source: str, target: str) -> bool:
        return same_language(self.source, source) and same_language(self.target, target)

    @property
    def tsv(self) -> str:
        return "\n".join(f"{source}\t{target}" for source, target in self.entries.items())

    @property
    def terms(self) -> str:
        """The entries in the format of `engine.corpora.terminology.parse_terms`, in which # starts a comment."""
        return lines_of(self.entries.items())


@dataclass
class Glossary:
    """A glossary. `user` is the creating account, None for local users; `project` is set for project tokens without an account."""

    name: str
    dictionaries: list[Dictionary]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat())
    user: int | None = None
    project: int | None = None

    @property
    def made(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat(self.created)

    def put(self, dictionary: Dictionary) -> None:
        """Add a dictionary, replacing an existing one for the same languages."""
        self.dictionaries = [old for old in self.dictionaries if not old.is_for(dictionary.source, dictionary.target)] + [
            dictionary
        ]

    def dictionary(self, source: str, target: str) -> Dictionary:
        """The dictionary for these languages. Raises NotFoundError if there is none."""
        for dictionary in self.dictionaries:
            if dictionary.is_for(source, target):
                return dictionary
        raise NotFoundError(f"The glossary {self.name[:80]} has no terms from {source[:20]} to {target[:20]}.")


def parse_entries(text: str, format: str) -> dict[str, str]:
    """{source term: target term} from TSV or CSV lines, in order. Raises InputError, naming the line, on invalid input."""
    if format not in FORMATS:
        raise InputError("entries_format must be tsv or csv.")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"The entries have more than {MOST_CHARACTERS:,} characters. Make several glossaries of them.")
    lines = [line.split("\t") for line in text.splitlines()] if format == "tsv" else _csv(text)
    entries: dict[str, str] = {}
    for number, columns in enumerate(lines, start=1):
        cells = [cell.strip() for cell in (columns[:2] if format == "csv" else columns)]
        if not any(cells):
            continue
        if len(cells) != 2 or not all(cells) or any(re.search(r"[\t\r\n\x00]", cell) for cell in cells):
            raise InputError(f"entries, line {number}: give a source term and a target term.")
        if cells[0] in entries:
            raise InputError(f"entries, line {number}: {cells[0][:80]!r} has a target term already.")
        entries[cells[0]] = cells[1]
    if not entries:
        raise InputError("A glossary needs at least one entry.")
    return entries


def _csv(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise InputError(f"entries: not valid CSV ({error}).") from None


class Glossaries:
    """The glossaries in the home folder, as visible to the caller."""

    def __init__(self, service: Service) -> None:
        self.access = service.store.access
        self.folder: Path = service.settings.home_dir / "glossaries"

    def list(self) -> list[Glossary]:
        """The glossaries visible to the caller, oldest first."""
        files = self.folder.glob("*.json") if self.folder.exists() else ()
        glossaries = [glossary for file in files if (glossary := self._read(file)) is not None and self._visible(glossary)]
        return sorted(glossaries, key=lambda glossary: (glossary.created, glossary.id))

    def find(self, number: str) -> Glossary | None:
        """The glossary with that id; None if there is none visible to the caller."""
        file = self.folder / f"{number}.json"
        if not ID_SHAPE.fullmatch(number) or not file.exists():
            return None
        result = self._read(file)
        return result if result is not None and self._visible(result) else None

    def get(self, number: str) -> Glossary:
        """The glossary with that id. Raises NotFoundError."""
        result = self.find(number)
        if result is None:
            raise NotFoundError(f"There is no glossary {number[:80]}.")
        return result

    def create(self, name: str, dictionaries: Sequence[Dictionary]) -> Glossary:
        """Create a glossary. Raises InputError if there are too many or it is invalid, Forbidden as `save` does."""
        access = self.access()
        project = access.project if access.user is None else None
        if sum((glossary.user, glossary.project) == (access.user, project) for glossary in self.list()) >= MOST_GLOSSARIES:
            raise InputError(f"There are {MOST_GLOSSARIES:,} glossaries already. Delete one first.")
        return self.save(Glossary(name, list(dictionaries), user=access.user, project=project))

    def save(self, glossary: Glossary) -> Glossary:
        """Store a glossary. Raises InputError on an invalid name or languages, Forbidden for callers with read-only access."""
        self._may_change()
        glossary.name = glossary.name.strip()
        if not glossary.name or len(glossary.name) > MOST_NAME:
            raise InputError(f"name: give one of at most {MOST_NAME:,} characters.")
        if not glossary.dictionaries:
            raise InputError("dictionaries: at least one is required.")
        for dictionary in glossary.dictionaries:
            if same_language(dictionary.source, dictionary.target):
                raise InputError(f"source_lang and target_lang are both {dictionary.source[:20]}. Name two languages.")
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / f"{glossary.id}.json", "the glossary") as temporary:
            temporary.write_text(json.dumps(asdict(glossary), ensure_ascii=False), encoding="utf-8")
        return glossary

    def delete(self, number: str) -> None:
        """Delete a glossary. Raises NotFoundError, or Forbidden for callers with read-only access."""
        self._may_change()
        (self.folder / f"{self.get(number).id}.json").unlink(missing_ok=True)

    def _read(self, file: Path) -> Glossary | None:
        """The glossary in a file; None, with a warning in the log, if it is damaged, so that the others stay usable."""
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            return Glossary(**{**values, "dictionaries": [Dictionary(**dictionary) for dictionary in values["dictionaries"]]})
        except (OSError, ValueError, TypeError, LookupError) as error:
            log.warning("glossary %s is damaged and left out: %s", file.stem, error)
            return None

    def _may_change(self) -> None:
        if not self.access().changes:
            raise Forbidden("An account with the role viewer is read-only. Ask an admin for the role member.")

    def _visible(self, glossary: Glossary) -> bool:
        access = self.access()
        if access.everything:
            return True
        if access.user is not None:
            return glossary.user == access.user
        return access.project is not None and (glossary.user, glossary.project) == (None, access.project)
