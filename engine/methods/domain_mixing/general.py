"""The bundled general sample as a further domain, for samples of one domain only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.errors import CorpusError
from engine.languages import bare, same_language

if TYPE_CHECKING:
    from engine.corpora import Segment

__all__ = ["GENERAL", "UNNAMED", "by_domain", "general_name", "general_sentences", "label"]

GENERAL = "general"
UNNAMED = "samples"

T = TypeVar("T")


def label(domain: str) -> str:
    """The name of a domain; sentences without a label are the samples' own."""
    return domain or UNNAMED


def by_domain(segments: Sequence[Segment]) -> dict[str, list[Segment]]:
    """Sentences by the name of their domain, in order of appearance."""
    found: dict[str, list[Segment]] = {}
    for segment in segments:
        found.setdefault(label(segment.domain), []).append(segment)
    return found


def wanted(domains: Sequence[str], general: str) -> bool:
    """Does the general sample join these domains? Raises CorpusError where it may not, and there is one domain only."""
    if general == "never" and len(domains) < 2:
        raise CorpusError(
            "The samples have one domain, and general=never leaves out the bundled sample that would be the other. Give a "
            "file for each domain, or set general=auto."
        )
    return general == "always" or (general == "auto" and len(domains) < 2)


def general_name(domains: Sequence[str]) -> str:
    """The general sample's domain: "general", where the user has no domain of that name."""
    return GENERAL if GENERAL not in domains else "bundled general"


def general_sentences(language: str, assets: Path, *, but: Sequence[str] = ()) -> list[str]:
    """The sentences of assets/samples/general-LANG that are not among `but`. Raises CorpusError where there are none."""
    code = bare(language)
    file = assets / "samples" / f"general-{code}" / f"general-{code}.txt"
    if not file.is_file() or not same_language(language, code):
        raise CorpusError(
            f"Samples of one domain need a general one beside them, and none is bundled for {language}. Give a second file "
            "of plain everyday sentences, with a domain label for each (--domains)."
        )
    lines = file.read_text(encoding="utf-8").splitlines()
    known = {" ".join(text.split()) for text in but}
    return [line for line in map(str.strip, lines) if line and line not in known]


def with_general(
    sentences: Mapping[str, Sequence[T]], language: str, assets: Path, general: str, texts: Sequence[str]
) -> dict[str, Sequence[T | str]]:
    """The domains, and the general one where `general` ("auto", "always", "never") wants it; `texts` are the user's."""
    found: dict[str, Sequence[T | str]] = dict(sentences)
    if wanted(list(sentences), general):
        found[general_name(list(sentences))] = general_sentences(language, assets, but=texts)
    return found
