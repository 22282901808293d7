"""Which sentences are the same but for trifles: exactly equal keys, and keys whose character shingles overlap by 80 %.

Pairs are found by prefix filtering (Bayardo, Ma and Srikant, WWW 2007; Xiao et al., PPJoin, WWW 2008): with the rarest
shingles first, two sets with Jaccard similarity >= t must share one of their first |x| - ceil(t |x|) + 1 shingles.
Unlike MinHash this misses no pair and needs no random numbers.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

from engine.progress import Progress

__all__ = ["groups", "key", "shingles"]

THRESHOLD = 0.8
# Three characters; a script without spaces says in two what others say in three or more.
NARROW, WIDE = 3, 2


def key(text: str) -> str:
    """The letters alone, casefolded, in compatibility form: no spaces, digits, punctuation or marks of width.

    A text without any letter keeps its characters, so that texts of digits do not all become one.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in folded if c.isalpha() or unicodedata.category(c).startswith("M")) or folded


def shingles(letters: str) -> frozenset[str]:
    """All runs of three characters (two in Chinese and its like); a shorter key is its own single shingle."""
    size = WIDE if sum(c > "\u2e7f" for c in letters) * 2 > len(letters) else NARROW
    return frozenset(letters[i : i + size] for i in range(max(1, len(letters) - size + 1)))


class _Components:
    """Union-find with path halving."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, item: int) -> int:
        while self.parent[item] != item:
            self.parent[item] = item = self.parent[self.parent[item]]
        return item

    def join(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        self.parent[max(one, other)] = min(one, other)  # the smallest index leads: no dependence on the order of pairs


def groups(texts: Sequence[str], sources: Sequence[str | None] = (), progress: Progress | None = None) -> list[int]:
    """For each text the index of the first text of its group; the same number means near-identical.

    Groups are closed under likeness: a like b and b like c puts all three together. Texts with equal (key of) `sources`
    are of one group as well. About 6 s for 37,000 sentences.
    """
    components = _Components(len(texts))
    first: dict[str, int] = {}
    for i, text in enumerate(texts):
        components.join(i, first.setdefault(key(text), i))
    origin: dict[str, int] = {}
    for i, source in enumerate(sources):
        if source:
            components.join(i, origin.setdefault(key(source), i))
    _join_similar(first, components, progress or Progress())
    return [components.find(i) for i in range(len(texts))]


def _join_similar(first: dict[str, int], components: _Components, progress: Progress) -> None:
    sets = {i: shingles(letters) for letters, i in first.items()}
    frequency = Counter(shingle for items in sets.values() for shingle in items)
    rank = {shingle: place for place, (shingle, _) in enumerate(sorted(frequency.items(), key=lambda x: (x[1], x[0])))}
    index: defaultdict[int, list[int]] = defaultdict(list)
    ranked = {i: sorted(map(rank.__getitem__, items)) for i, items in sets.items()}
    # From short to long: every indexed set is at most as long as the one that looks, so one bound on length is enough.
    for done, i in enumerate(sorted(ranked, key=lambda i: (len(ranked[i]), i))):
        if done % 1000 == 0:
            progress.advance(done, len(ranked))
        items = ranked[i]
        shortest = math.ceil(THRESHOLD * len(items))
        prefix = items[: len(items) - shortest + 1]
        seen: set[int] = set()
        for shingle in prefix:
            for other in index[shingle]:
                if other in seen or len(ranked[other]) < shortest:
                    continue
                seen.add(other)
                if components.find(i) == components.find(other):
                    continue
                shared = len(sets[i] & sets[other])
                if shared >= THRESHOLD * (len(items) + len(ranked[other]) - shared):
                    components.join(i, other)
            index[shingle].append(i)
