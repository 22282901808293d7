"""The bundled general sample as an additional domain, for samples with only one domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from engine.corpora import Segment
from engine.corpora.general_text import general_domain
from engine.errors import CorpusError

GENERAL = "general"
UNNAMED = "samples"

T = TypeVar("T")


def label(domain: str) -> str:
    """The name of a domain; sentences without a domain label belong to the domain "samples"."""
    return domain or UNNAMED


def by_domain(segments: Sequence[Segment]) -> dict[str, list[Segment]]:
    """Sentences grouped by the name of their domain, in order of appearance."""
    result: dict[str, list[Segment]] = {}
    for segment in segments:
        result.setdefault(label(segment.domain), []).append(segment)
    return result


def needs_general(domains: Sequence[str], general: str) -> bool:
    """Whether the general sample is added to these domains. Raises CorpusError if there is only one and `general` is "never"."""
    if general == "never" and len(domains) < 2:
        raise CorpusError(
            "The samples have one domain, and general=never excludes the bundled sample that would be the "
            "other. Provide a file for each domain, or set general=auto."
        )
    return general == "always" or (general == "auto" and len(domains) < 2)


def general_name(domains: Sequence[str]) -> str:
    """The name of the general sample's domain: "general", or "bundled general" if the user has a domain of that name."""
    return GENERAL if GENERAL not in domains else "bundled general"


def with_general(
    sentences: Mapping[str, Sequence[T]], language: str, assets: Path, general: str, texts: Sequence[str]
) -> dict[str, Sequence[T | str]]:
    """The domains, with the general sample, except for `texts`, if `general` ("auto", "always", "never") requires it."""
    result: dict[str, Sequence[T | str]] = dict(sentences)
    if needs_general(list(sentences), general):
        result[general_name(list(sentences))] = general_domain(assets, language, exclude=texts)
    return result
