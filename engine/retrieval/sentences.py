"""A retrieval set as a file: pairs.jsonl, one {"source", "target", "domain"?} a line; no source in a monolingual one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from engine.errors import BundleError
from engine.files import write_jsonl
from engine.methods.samples import SentencePair

__all__ = ["FILE", "load_sentences", "save_sentences"]

FILE = "pairs.jsonl"


def save_sentences(pairs: Sequence[SentencePair], path: Path, *, sources: bool = True) -> None:
    """Write the set; `sources=False` leaves the source side out. Raises StorageError."""
    rows = []
    for pair in pairs:
        row = {"source": pair.source, "target": pair.target} if sources else {"target": pair.target}
        rows.append({**row, "domain": pair.domain} if pair.domain else row)
    write_jsonl(path, rows, "the retrieval set")


def load_sentences(path: Path, *, sources: bool = True) -> list[SentencePair]:
    """Read a set in its order. Raises BundleError when it is missing or a line is no sentence."""
    if not path.exists():
        raise BundleError(f"it has no {path.name}, in which the method finds sentences. Get the bundle again.")
    found: list[SentencePair] = []
    with path.open(encoding="utf-8", newline="\n") as lines:
        try:
            for row in map(json.loads, lines):
                source = row["source"] if sources else ""
                pair = SentencePair(source, row["target"], row.get("domain", ""))
                if not all(isinstance(text, str) for text in (pair.source, pair.target, pair.domain)):
                    raise TypeError
                found.append(pair)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise BundleError(
                f"line {len(found) + 1} of {path.name} is no sentence pair. Get the bundle again."
            ) from None
    return found
