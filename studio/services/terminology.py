"""The terms that a project's translations should use: counted in comparisons, and enforced on request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import atomic_write
from engine.core.step_cache import content_hash
from engine.corpora.terminology import TERM_FILES, Term, called_for, lines_of, parse_terms
from engine.errors import InputError
from engine.messages import Message
from engine.store import ProjectRow
from engine.workflows.read_apart import terms_apart
from studio.i18n.translate import mark

if TYPE_CHECKING:
    from studio.services.service import Service

FILE = "terms.tsv"
MOST_CHARACTERS = 200_000  # of all terms of a project


def project_terms(service: Service, project: ProjectRow) -> str:
    """The project's terms as the user entered them; empty if there are none."""
    file = _file(service, project.id)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return text if text.strip() else ""


def enforced_terms(service: Service, project: ProjectRow, *, enforce: bool) -> str:
    """The hash of the terms that a comparison enforces; empty if there are no terms or `enforce` is off."""
    text = project_terms(service, project) if enforce else ""
    return content_hash(text) if text else ""


def termbase(service: Service, project: ProjectRow) -> Sequence[Term]:
    """The project's parsed terms, cached until the file changes; empty if there are none."""
    file = _file(service, project.id)
    return _termbase(file, file.stat().st_mtime_ns, project.target, project.source) if file.exists() else ()


@lru_cache(maxsize=8)
def _termbase(file: Path, modified: int, target: str, source: str) -> Sequence[Term]:
    return parse_terms(file.read_text(encoding="utf-8").splitlines(), file.name, target, source)


def required_terms(terms: Sequence[Term], source: str, reference: str) -> list[Term]:
    """The terms that occur in the source and, if there is a reference, in the reference too."""
    text = source.casefold()
    near = [term for term in terms if term.source and term.source.split()[0].casefold() in text]  # a cheap pre-filter
    return [term for term in called_for(near, source) if not reference or term.in_target.search(reference)]


def set_terms(service: Service, project: ProjectRow, text: str) -> int:
    """Replace the project's terms; returns their number. Raises InputError, naming the line, on an invalid term."""
    count = len(parse_terms(text.splitlines(), Message(mark("The terms")), project.target, project.source))
    service.workspace(project.id, change=True)
    with atomic_write(_file(service, project.id), "the terms") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return count


def read_file(project: ProjectRow, path: Path) -> str:
    """The terms for a project's languages in a TBX, CSV or text file, as text for `set_terms`. Raises InputError."""
    if path.suffix.lower() not in TERM_FILES:
        raise InputError(
            "{file} is not a file of terms; choose one that ends in {endings}.", file=path.name, endings=", ".join(TERM_FILES)
        )
    text = lines_of(terms_apart(path, project.target, project.source))
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            "The terms of {file} have more than {most:,} characters together; keep those of this project's field.",
            file=path.name, most=MOST_CHARACTERS,
        )  # fmt: skip
    return text


def _file(service: Service, project_id: int) -> Path:
    return service.workspace(project_id) / FILE
