"""Training, validation and test parts without leaks: sentences that are alike but for trifles stay in one part."""

from __future__ import annotations

import random
from collections import defaultdict

from engine.corpora.corpus import Corpus
from engine.corpora.near import groups
from engine.corpora.types import Segment, Split
from engine.errors import OptionError
from engine.progress import Progress

__all__ = ["split"]

HELD_OUT = 0.2  # of a small corpus at most a fifth is held out: the rest is needed to learn from


def split(corpus: Corpus, *, valid: int, test: int = 0, seed: int = 1, progress: Progress | None = None) -> Split:
    """Divide the corpus into train, `valid` and `test` sentences; the same seed gives the same parts.

    Sentences equal after removal of case, punctuation, spaces and digits, near-duplicates (Jaccard similarity of
    character shingles >= 0.8), and translations of one source never straddle parts. When the corpus is too small, the
    held-out parts shrink in proportion, and the result's notes say so. Raises OptionError on a negative size.
    """
    if valid < 0 or test < 0:
        raise OptionError(f"The sizes of the parts cannot be negative (valid {valid}, test {test}).")
    segments = corpus.segments
    notes: list[str] = []
    sizes = _sizes(len(segments), valid, test, notes)
    leaders = groups([s.text for s in segments], [s.source for s in segments], progress)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for i, leader in enumerate(leaders):
        members[leader].append(i)
    order = sorted(members)
    random.Random(seed).shuffle(order)

    part = ["train"] * len(segments)
    # One group always stays for training, the largest: it is the least fit to be held out.
    kept = max(order, key=lambda leader: (len(members[leader]), -leader), default=None)
    free = [leader for leader in order if leader != kept]
    for name, size in (("test", sizes[1]), ("valid", sizes[0])):
        left = size
        rest = []
        for leader in free:
            if 0 < len(members[leader]) <= left:
                left -= len(members[leader])
                for i in members[leader]:
                    part[i] = name
            else:
                rest.append(leader)
        free = rest
        if left:
            notes.append(
                f"The {'validation' if name == 'valid' else name} part holds {size - left:,} instead of {size:,} "
                "sentences, because groups of near-identical sentences are not torn apart."
            )

    def chosen(name: str) -> list[Segment]:
        return [segment for segment, where in zip(segments, part, strict=True) if where == name]

    return Split(train=chosen("train"), valid=chosen("valid"), test=chosen("test"), notes=notes)


def _sizes(total: int, valid: int, test: int, notes: list[str]) -> tuple[int, int]:
    """Sizes that leave four fifths for training, at least one sentence a part where there are enough."""
    asked = valid + test
    most = max(int(total * HELD_OUT), min(2 if test else 1, total - 1), 0)
    if asked <= most:
        return valid, test
    given_test = min(test, max(1, round(most * test / asked))) if test and most > bool(valid) else 0
    given_valid = most - given_test if valid else 0
    notes.append(
        f"The corpus has only {total:,} sentences, so {given_valid:,} instead of {valid:,} are held out for validation"
        + (f" and {given_test:,} instead of {test:,} for the test." if test else ".")
    )
    return given_valid, given_test
