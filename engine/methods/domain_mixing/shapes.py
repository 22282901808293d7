"""The data types of domain proportions in proportions.json, shown.json and REST responses."""

from __future__ import annotations

from typing import NotRequired, TypedDict

WordRow = TypedDict(
    "WordRow", {"text": str, "count": int, "in": NotRequired[list[int]], "proportions": list[float], "shared": float}
)  # a word of a corpus: its count, counts by domain, mean proportions, and how much domains share it


class WordLists(TypedDict):
    """The words with the highest proportion of each domain, and the words most shared by domains."""

    of: dict[str, list[WordRow]]
    shared: list[WordRow]


class DomainFigures(TypedDict):
    """The words of a domain: their count, mean proportions (k,), and mean proportions per layer (P, k)."""

    words: int
    mean: list[float] | None
    layers: list[list[float]] | None


class Histogram(TypedDict):
    """Counts of words by the proportion of each domain, (P, k, bins)."""

    bins: int
    counts: list[list[list[int]]]


class CorpusSummary(TypedDict):
    """The words of a corpus on one side; see `report.summary`."""

    side: str
    domains: list[str]
    layers: list[str]
    word_count: int
    by_domain: dict[str, DomainFigures]
    histogram: Histogram
    words: WordLists
    index: NotRequired[list[WordRow]]


class HeldOut(TypedDict):
    """How well held-out words and sentences are assigned to their domain; see `proportions.figures`."""

    layers: list[str]
    words: int
    own_proportion: list[float]
    words_leaning_right: list[float]
    sentences: int
    sentences_leaning_right: float


class SentenceWord(TypedDict):
    """A word's proportions: the mean over layers (k,), and per layer (P, k)."""

    text: str
    proportions: list[float]
    shared: float
    layers: list[list[float]]


class SentenceProportions(TypedDict):
    """The proportions of a sentence on one side."""

    sentence: str
    side: str
    domains: list[str]
    layers: list[str]
    mean: list[float] | None
    layer_means: list[list[float]] | None
    words: list[SentenceWord]


class SentenceShares(TypedDict):
    """The proportions of a sentence and its translation; sides that the model lacks are omitted."""

    source: str
    translation: str
    encoder: NotRequired[SentenceProportions]
    decoder: NotRequired[SentenceProportions]


class Example(SentenceShares):
    """A precomputed example sentence of a domain."""

    domain: str


class Shown(TypedDict, total=False):
    """The content of shown.json; only `stamp` and `error` if fitting failed."""

    stamp: str
    error: str
    seconds: float
    domains: list[str]
    sentences: dict[str, int]
    held_out: dict[str, HeldOut]
    corpus: dict[str, CorpusSummary]
    examples: list[Example]
