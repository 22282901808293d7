"""The shapes of domain proportions: of proportions.json, of shown.json, and of the REST interface's answers."""

from __future__ import annotations

from typing import NotRequired, TypedDict

WordRow = TypedDict(
    "WordRow", {"text": str, "count": int, "in": NotRequired[list[int]], "proportions": list[float], "shared": float}
)  # a word of a corpus: how often, how often in each domain, its mean proportions, and how much domains share it


class WordLists(TypedDict):
    """Of each domain the words that lean to it most, and the words that the domains share most."""

    of: dict[str, list[WordRow]]
    shared: list[WordRow]


class DomainFigures(TypedDict):
    """Of a domain's words: how many, their mean proportions (k,), and those of each layer (P, k)."""

    words: int
    mean: list[float] | None
    layers: list[list[float]] | None


class Histogram(TypedDict):
    """Counts of words by each domain's proportion, (P, k, bins)."""

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
    """How well held-out words and sentences lean to their own domain; see `proportions.figures`."""

    layers: list[str]
    words: int
    own_proportion: list[float]
    words_leaning_right: list[float]
    sentences: int
    sentences_leaning_right: float


class SentenceWord(TypedDict):
    """A word's proportions (k,), over all layers and for each (P, k)."""

    text: str
    proportions: list[float]
    shared: float
    layers: list[list[float]]


class SentenceProportions(TypedDict):
    """A sentence as one side reads it."""

    sentence: str
    side: str
    domains: list[str]
    layers: list[str]
    mean: list[float] | None
    layer_means: list[list[float]] | None
    words: list[SentenceWord]


class SentenceShares(TypedDict):
    """A sentence and its translation; a side that the proportions do not have is left out."""

    source: str
    translation: str
    encoder: NotRequired[SentenceProportions]
    decoder: NotRequired[SentenceProportions]


class Example(SentenceShares):
    """A sentence of a domain that is ready to be looked at."""

    domain: str


class Shown(TypedDict, total=False):
    """shown.json; nothing but `stamp` and `error` where fitting failed."""

    stamp: str
    error: str
    seconds: float
    domains: list[str]
    sentences: dict[str, int]
    held_out: dict[str, HeldOut]
    corpus: dict[str, CorpusSummary]
    examples: list[Example]
