"""Glossaries that clients of DeepL's interface keep: source and target terms of one or more pairs of languages.

Each is a file of its own, of the account whose token made it; an admin and the users of this machine see all of them. A token of
one project that belongs to no account sees those that tokens of this kind made for the same project.
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

MOST_CHARACTERS = 1_000_000  # of a glossary's entries together
MOST_GLOSSARIES = 1_000  # of one account
MOST_NAME = 1_024
ID_SHAPE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FORMATS = ("tsv", "csv")


@dataclass
class Dictionary:
    """The entries of one pair of languages: {source term: target term}."""

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
        """The entries as `engine.corpora.terminology.parse_terms` reads them, to which # begins a comment."""
        return lines_of(self.entries.items())


@dataclass
class Glossary:
    """`user` is the account that made it, None for a user of this machine; `project` that of a token without an account."""

    name: str
    dictionaries: list[Dictionary]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat())
    user: int | None = None
    project: int | None = None

    @property
    def made(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat(self.created)

    def put(self, one: Dictionary) -> None:
        """Add a dictionary, or put it in the place of that of its languages."""
        self.dictionaries = [old for old in self.dictionaries if not old.is_for(one.source, one.target)] + [one]

    def dictionary(self, source: str, target: str) -> Dictionary:
        """Raises NotFoundError where there is none of these languages."""
        for one in self.dictionaries:
            if one.is_for(source, target):
                return one
        raise NotFoundError(f"The glossary {self.name[:80]} has no terms from {source[:20]} to {target[:20]}.")


def parse_entries(text: str, format: str) -> dict[str, str]:
    """{source term: target term} of TSV or CSV lines, in order. Raises InputError, with the line, on anything else."""
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
    """The glossaries of a data folder, as whoever asks sees them."""

    def __init__(self, service: Service) -> None:
        self.access = service.store.access
        self.folder: Path = service.settings.home_dir / "glossaries"

    def list(self) -> list[Glossary]:
        """Those that may be seen, the oldest first."""
        files = self.folder.glob("*.json") if self.folder.exists() else ()
        glossaries = [one for file in files if (one := self._read(file)) is not None and self._visible(one)]
        return sorted(glossaries, key=lambda one: (one.created, one.id))

    def find(self, number: str) -> Glossary | None:
        """The glossary of that id; None where there is none that may be seen."""
        file = self.folder / f"{number}.json"
        if not ID_SHAPE.fullmatch(number) or not file.exists():
            return None
        result = self._read(file)
        return result if result is not None and self._visible(result) else None

    def get(self, number: str) -> Glossary:
        """Raises NotFoundError."""
        result = self.find(number)
        if result is None:
            raise NotFoundError(f"There is no glossary {number[:80]}.")
        return result

    def create(self, name: str, dictionaries: Sequence[Dictionary]) -> Glossary:
        """Keep a new glossary. Raises InputError where there are too many, or it is none."""
        access = self.access()
        project = access.project if access.user is None else None
        if sum((one.user, one.project) == (access.user, project) for one in self.list()) >= MOST_GLOSSARIES:
            raise InputError(f"There are {MOST_GLOSSARIES:,} glossaries already. Delete one first.")
        return self.save(Glossary(name, list(dictionaries), user=access.user, project=project))

    def save(self, glossary: Glossary) -> Glossary:
        """Keep it as it is now. Raises InputError on a name or languages that cannot be, Forbidden for who may only look."""
        self._may_change()
        glossary.name = glossary.name.strip()
        if not glossary.name or len(glossary.name) > MOST_NAME:
            raise InputError(f"name: give one of at most {MOST_NAME:,} characters.")
        if not glossary.dictionaries:
            raise InputError("dictionaries: at least one is required.")
        for one in glossary.dictionaries:
            if same_language(one.source, one.target):
                raise InputError(f"source_lang and target_lang are both {one.source[:20]}. Name two languages.")
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / f"{glossary.id}.json", "the glossary") as temporary:
            temporary.write_text(json.dumps(asdict(glossary), ensure_ascii=False), encoding="utf-8")
        return glossary

    def delete(self, number: str) -> None:
        """Raises NotFoundError, or Forbidden for who may only look."""
        self._may_change()
        (self.folder / f"{self.get(number).id}.json").unlink(missing_ok=True)

    def _read(self, file: Path) -> Glossary | None:
        """None where the file is damaged, which is logged: one glossary does not take the others with it."""
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            return Glossary(**{**values, "dictionaries": [Dictionary(**one) for one in values["dictionaries"]]})
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
