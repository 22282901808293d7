"""Sources of phrases from the user's own translations: phrase pairs that are consistent with a word alignment.

Samples with the user's sources show better than any model what a phrase was translated from. Words are aligned by eflomal
(Östling and Tiedemann, 2016) in both directions, symmetrised by grow-diag-final-and (Koehn et al., 2003), or, if eflomal is not
installed, by the base's attention (engine.decoding.word_alignment). A phrase's source consists of the source words aligned with
it, if these are aligned with nothing outside it (Och and Ney, 2004).
"""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from engine.base.model import BaseModel
from engine.core.progress import Progress
from engine.decoding.word_alignment import align
from engine.errors import MissingError
from engine.phrases.tokenize import clauses_of

Links = set[tuple[int, int]]  # (source word, target word), from 0
Spans = list[tuple[int, int]]
NEAR = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
LONGEST = 40  # maximum words of a stretch that is compared with the phrases
LINKED = 0.4  # minimum share of a target word's attention on a source word for a link


def can_align() -> bool:
    """Whether the word aligner is installed (`pip install 'tailor-mt[align]'`)."""
    return importlib.util.find_spec("eflomal") is not None


def align_words(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Links]:
    """The links of each pair of (source words, target words), both non-empty. Raises MissingError without eflomal."""
    if not can_align():
        raise MissingError("The word aligner eflomal is not installed: pip install 'tailor-mt[align]', or set aligner to none.")
    from eflomal import Aligner

    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        forward, reverse = Path(folder) / "forward", Path(folder) / "reverse"
        Aligner().align(
            [" ".join(source) + "\n" for source, _ in pairs],
            [" ".join(target) + "\n" for _, target in pairs],
            links_filename_fwd=str(forward),
            links_filename_rev=str(reverse),
        )
        links = [read_links(file) for file in (forward, reverse)]
    return [symmetric(forward_links, reverse_links) for forward_links, reverse_links in zip(*links, strict=True)]


def read_links(file: Path) -> list[Links]:
    """Parse one line per pair, such as `0-0 1-2`: source word, target word."""
    results: list[Links] = []
    for line in file.read_text(encoding="ascii").splitlines():
        split = (link.split("-") for link in line.split())
        results.append({(int(i), int(j)) for i, j in split})
    return results


def symmetric(forward: Links, reverse: Links) -> Links:
    """grow-diag-final-and: the common links, then neighbouring links of either side, then links between two unlinked words."""
    union = forward | reverse
    links = forward & reverse
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link: tuple[int, int]) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for i, j in sorted(links):
            for di, dj in NEAR:
                link = (i + di, j + dj)
                if link in union and link not in links and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    grown = True
    for side in (forward, reverse):
        for link in sorted(side):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links


def consistent_span(first: int, last: int, links: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """The smallest source span (both ends included) consistent with the target words `first` to `last`.

    It contains every word linked to the target span. None if no word is linked, or a word in the span is also linked outside.
    """
    links = list(links)
    inside = [i for i, j in links if first <= j <= last]
    if not inside:
        return None
    low, high = min(inside), max(inside)
    if any(low <= i <= high and not first <= j <= last for i, j in links):
        return None
    return low, high


def spans_of(text: str, language: str) -> Spans:
    """The words of a text as character offsets (characters in languages written without spaces)."""
    return list(itertools.chain.from_iterable(clauses_of(text, language)))


def folded(text: str) -> str:
    """The form in which phrases are counted: lower case, with runs of spaces collapsed."""
    return " ".join(text.split()).lower()


def sources_of_phrases(
    phrases: Iterable[str],
    pairs: Iterable[tuple[str, str]],
    languages: tuple[str, str],
    align: Callable[[Sequence[tuple[Sequence[str], Sequence[str]]]], list[Links]] = align_words,
) -> dict[str, str]:
    """{phrase: its source} for phrases of the target sides of (source, target) pairs; `languages` are source and target.

    If a phrase has several sources, the most frequent one is used, the first of equally frequent ones.
    """
    cut = [(a, b, spans_of(a, languages[0]), spans_of(b, languages[1])) for a, b in pairs]
    cut = [row for row in cut if row[2] and row[3]]
    if not cut:
        return {}
    aligned = align([([a[i:j] for i, j in left], [b[i:j] for i, j in right]) for a, b, left, right in cut])
    return _most_frequent(phrases, ((*row, links) for row, links in zip(cut, aligned, strict=True)))


def sources_by_attention(
    phrases: Iterable[str], pairs: Sequence[tuple[str, str]], base: BaseModel, progress: Progress | None = None
) -> dict[str, str]:
    """Like `sources_of_phrases`, linking each target word with the source word that has most of its attention.

    `base` translates in the pairs' direction. Raises Cancelled.
    """
    rows = []
    for (source, target), result in zip(pairs, align(base, pairs, progress=progress), strict=True):
        best = [max(weights.items(), key=lambda item: item[1], default=(0, 0.0)) for weights in result.weights]
        links = {(i, j) for j, (i, share) in enumerate(best) if share >= LINKED}
        rows.append((source, target, result.source, result.target, links))
    return _most_frequent(phrases, rows)


def _most_frequent(phrases: Iterable[str], rows: Iterable[tuple[str, str, Spans, Spans, Links]]) -> dict[str, str]:
    """{phrase: its most frequent source} of aligned pairs (texts, word spans, links)."""
    by_folded = {folded(phrase): phrase for phrase in phrases}
    result: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target, left, right, links in rows:
        for first in range(len(right)):
            for last in range(first, min(len(right), first + LONGEST)):
                phrase = by_folded.get(folded(target[right[first][0] : right[last][1]]))
                span = consistent_span(first, last, links) if phrase else None
                if phrase and span:
                    result[phrase][source[left[span[0]][0] : left[span[1]][1]]] += 1
    return {phrase: counts.most_common(1)[0][0] for phrase, counts in result.items()}
