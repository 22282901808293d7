"""Well-known open models for a language pair, from the table in recommended.toml. No network is used."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.core.languages import Codes
from engine.core.model_card import ModelCard

TABLE = Path(__file__).with_name("recommended.toml")
PROGRAM_BYTES = 400 << 20  # Python, torch and transformers while translating on a CPU; docs/bases.md
WEIGHT_BYTES = 4  # in float32


def memory_needed(weights: int) -> int:
    """The bytes needed to translate with a base that has this many weights."""
    return PROGRAM_BYTES + weights * WEIGHT_BYTES


@dataclass(frozen=True)
class RecommendedBase:
    """One row of the table.

    `weights` is a count, `download_bytes` the size of the download, `pickled` whether its weights are a pickle; `reverse` is
    the hub id of the opposite direction for a model of one direction.
    """

    hub_id: str
    family: str
    sources: Codes
    targets: Codes
    card: ModelCard
    weights: int
    download_bytes: int
    pickled: bool
    reverse: str = ""

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self.hub_id.rpartition("/")[2]

    @property
    def multilingual(self) -> bool:
        """Whether it translates between any two of its languages."""
        return len(self.sources.tags) > 2 and len(self.targets.tags) > 2

    def translates(self, source: str, target: str) -> bool:
        """Whether it translates in that direction."""
        return bool(self.sources.find(source) and self.targets.find(target)) and source != target

    def command(self) -> str:
        """The command that adds it."""
        return f"tailormt base add {self.hub_id}" + (" --convert" if self.pickled else "")

    def to_mapping(self) -> dict[str, object]:
        """For JSON: sizes in bytes; `memory_bytes` is the memory for translating in float32."""
        fields = ("hub_id", "family", "weights", "download_bytes", "pickled", "reverse")
        return {name: getattr(self, name) for name in fields} | {
            "license": self.card.license_name, "restricted": self.card.restricted, "command": self.command(),
            "memory_bytes": memory_needed(self.weights), "languages": len({*self.sources.tags, *self.targets.tags}),
        }  # fmt: skip


def recommended(source: str, target: str) -> list[RecommendedBase]:
    """The models that translate from `source` to `target` (BCP-47 tags), bilingual before multilingual, smaller before larger."""
    rows = [row for row in _rows() if row.translates(source, target)]
    back = [row for row in _rows() if row.translates(target, source)]
    return [_with_reverse(row, back) for row in sorted(rows, key=lambda row: (row.multilingual, row.weights))]


def _with_reverse(row: RecommendedBase, back: list[RecommendedBase]) -> RecommendedBase:
    """A model of one direction with the model of the opposite direction nearest to it in size."""
    candidates = [candidate for candidate in back if not candidate.multilingual]
    if row.multilingual or not candidates:
        return row
    nearest = min(candidates, key=lambda candidate: abs(candidate.weights - row.weights))
    return RecommendedBase(**{**vars(row), "reverse": nearest.hub_id})


def table_date() -> datetime.date:
    """The date at which the table was compiled."""
    return _table()["date"]


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


@cache
def _rows() -> tuple[RecommendedBase, ...]:
    lists = _table()["languages"]

    def codes(text: str) -> Codes:
        return Codes({code: code for code in lists.get(text, text).split()})

    return tuple(
        RecommendedBase(
            hub_id=row["id"],
            family=row["family"],
            sources=codes(row["source"]),
            targets=codes(row["target"]),
            card=ModelCard(row["id"], license=row["license"]),
            weights=row["million_weights"] * 10**6,
            download_bytes=row["megabytes"] * 10**6,
            pickled=row["pickled"],
        )
        for row in _table()["model"]
    )
