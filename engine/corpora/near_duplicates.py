"""Near-duplicates: sentences with equal keys, or with keys whose character shingles overlap by 80 %.

Pairs are found by prefix filtering (Bayardo, Ma and Srikant, WWW 2007; Xiao et al., PPJoin, WWW 2008): with the rarest
shingles first, two sets with Jaccard similarity >= t must share one of their first |x| - ceil(t |x|) + 1 shingles.
Unlike MinHash, this misses no pair and needs no random numbers.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence

from engine.core.progress import Progress

# Characters per shingle; in scripts without spaces, two carry as much information as three or more in others.
NARROW, WIDE = 3, 2


def key(text: str) -> str:
    """Only the letters, casefolded, in compatibility form: no spaces, digits, punctuation or width variants.

    A text without letters keeps its characters, so that texts of digits do not all get the same key.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in folded if c.isalpha() or unicodedata.category(c).startswith("M")) or folded


def shingles(letters: str) -> frozenset[str]:
    """All runs of three characters (two in wide scripts such as Chinese); a shorter key is its own only shingle."""
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

    def join(self, first: int, second: int) -> None:
        first, second = self.find(first), self.find(second)
        self.parent[max(first, second)] = min(first, second)  # the smallest index leads, whatever the order of pairs


def groups(texts: Sequence[str], sources: Sequence[str | None] = (), progress: Progress | None = None) -> list[int]:
    """For each text, the index of the first text in its group of near-identical texts.

    Similarity is made transitive: if a is similar to b and b to c, all three are in one group. So are texts whose `sources`
    have equal keys.
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
    frequency = Counter(shingle for letters in first for shingle in shingles(letters))
    rank = {shingle: position for position, (shingle, _) in enumerate(sorted(frequency.items(), key=lambda x: (x[1], x[0])))}
    del frequency
    # The ranks of a text's shingles, the rarest first; an array of numbers takes a twentieth of the memory of a set of strings.
    ranks = {i: array("l", sorted(map(rank.__getitem__, shingles(letters)))) for letters, i in first.items()}
    index: defaultdict[int, list[int]] = defaultdict(list)
    size = {i: len(items) for i, items in ranks.items()}
    prefix: dict[int, int] = {}  # number of rarest shingles that are compared
    # From short to long: every indexed set is at most as long as the current one, so one bound on length is sufficient.
    for done, i in enumerate(sorted(ranks, key=lambda i: (size[i], i))):
        if done % 200 == 0:
            progress.advance(done, len(ranks))
        ranked = ranks[i]
        shortest = (4 * size[i] + 4) // 5  # ceil(0.8 n) without rounding errors
        prefix[i] = _prefix(size[i])
        result: Counter[int] = Counter()
        for shingle in ranked[: prefix[i]]:
            result.update(index[shingle])
            index[shingle].append(i)
        ranked_set: frozenset[int] = frozenset()
        for other, shared in result.items():
            if size[other] < shortest:
                continue
            # Beyond the prefix that ends first, at most the remainder of that set can be shared (PPJoin).
            end = i if ranked[prefix[i] - 1] <= ranks[other][prefix[other] - 1] else other
            if not _enough(shared + size[end] - prefix[end], size[i] + size[other]):
                continue
            if components.find(i) != components.find(other):
                ranked_set = ranked_set or frozenset(ranked)
                if _enough(len(ranked_set.intersection(ranks[other])), size[i] + size[other]):
                    components.join(i, other)


def _enough(shared: int, total: int) -> bool:
    """Whether two sets with `total` items together, `shared` of them in both, have a Jaccard similarity of at least 0.8."""
    return 5 * shared >= 4 * (total - shared)


class NearIndex:
    """An index of texts in which near-identical ones can be looked up; it stores only these texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        keys = [key(text) for text in texts]
        self._exact: dict[str, int] = {}
        for index, letters in enumerate(keys):
            self._exact.setdefault(letters, index)
        self._sets = {index: shingles(letters) for letters, index in self._exact.items()}
        frequency = Counter(shingle for items in self._sets.values() for shingle in items)
        ordered = sorted(frequency.items(), key=lambda x: (x[1], x[0]))
        self._rank = {shingle: index for index, (shingle, _) in enumerate(ordered)}
        self._index: defaultdict[int, list[int]] = defaultdict(list)
        for index, items in self._sets.items():
            for shingle in sorted(map(self._rank.__getitem__, items))[: _prefix(len(items))]:
                self._index[shingle].append(index)

    def find(self, text: str) -> tuple[int, bool] | None:
        """(index, True) of the first text with an equal key, otherwise (index, False) of the first near-identical text, or None."""
        letters = key(text)
        same = self._exact.get(letters)
        if same is not None:
            return same, True
        items = shingles(letters)
        ranks = sorted(self._rank[shingle] for shingle in items if shingle in self._rank)
        # Shingles that no indexed text has are the rarest: they come first in the prefix and match nothing.
        prefix_length = _prefix(len(items)) - (len(items) - len(ranks))
        near = {position for shingle in ranks[: max(0, prefix_length)] for position in self._index.get(shingle, ())}
        matches = (
            position
            for position in sorted(near)
            if _enough(len(items & self._sets[position]), len(items) + len(self._sets[position]))
        )
        result = next(matches, None)
        return None if result is None else (result, False)


def _prefix(size: int) -> int:
    """The number of rarest shingles of which two similar sets must share one: |x| - ceil(0.8 |x|) + 1."""
    return size - (4 * size + 4) // 5 + 1
