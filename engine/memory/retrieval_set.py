"""A retrieval set as a file: pairs.jsonl, one {"source", "target", "domain"?, "plausibility"?} per line.

A monolingual set has no source. A plausibility below 1 is the likelihood of a source that the base wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_jsonl, write_jsonl
from engine.corpora.types import SentencePair
from engine.errors import BundleError

FILE = "pairs.jsonl"


def save_sentences(pairs: Sequence[SentencePair], path: Path, *, sources: bool = True) -> None:
    """Write the set; `sources=False` omits the source side. Raises StorageError."""
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        row = {"source": pair.source, "target": pair.target} if sources else {"target": pair.target}
        rows.append(row | ({"domain": pair.domain} if pair.domain else {}))
        if sources and pair.plausibility < 1:
            rows[-1]["plausibility"] = pair.plausibility
    write_jsonl(path, rows, "the retrieval set")


def load_sentences(path: Path, *, sources: bool = True) -> list[SentencePair]:
    """Read a set in order. Raises BundleError if it is missing or a line is not a sentence."""
    if not path.exists():
        raise BundleError(
            "it has no {path}, from which the method retrieves sentences. Get a new copy of the bundle.", path=path.name
        )
    results: list[SentencePair] = []
    try:
        for row in read_jsonl(path):
            source = row["source"] if sources else ""
            plausibility = float(row.get("plausibility", 1.0))
            pair = SentencePair(source, row["target"], row.get("domain", ""), plausibility=plausibility)
            if not all(isinstance(text, str) for text in (pair.source, pair.target, pair.domain)):
                raise TypeError
            if not 0 <= plausibility <= 1:
                raise ValueError
            results.append(pair)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BundleError(
            "line {count} of {path} is not a sentence pair. Get a new copy of the bundle.", count=len(results) + 1, path=path.name
        ) from None
    return results
