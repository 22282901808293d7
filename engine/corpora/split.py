"""Leak-free training, validation and test parts: near-identical sentences stay in one part."""

from __future__ import annotations

import random
from collections import defaultdict

from engine.core.progress import Progress
from engine.corpora.corpus import Corpus
from engine.corpora.near_duplicates import groups
from engine.corpora.types import Segment, Split
from engine.errors import OptionError
from engine.messages import Message

HELD_OUT = 0.2  # largest share of a corpus that is held out: the rest is needed for training


def split(corpus: Corpus, *, valid: int, test: int = 0, seed: int = 1, progress: Progress | None = None) -> Split:
    """Divide the corpus into train, `valid` and `test` sentences; the same seed gives the same parts.

    Sentences that are equal but for case, punctuation, spaces and digits, near-duplicates (Jaccard similarity of
    character shingles >= 0.8), and translations of one source are never divided between parts. If the corpus is too small,
    the held-out parts shrink in proportion, and the result's notes say so. Raises OptionError on a negative size.
    """
    if valid < 0 or test < 0:
        raise OptionError("The sizes of the parts cannot be negative (valid {valid}, test {test}).", valid=valid, test=test)
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
    # The largest group always stays in the training part: it is the least suitable for holding out.
    selected = max(order, key=lambda leader: (len(members[leader]), -leader), default=None)
    free = [leader for leader in order if leader != selected]
    for name, size in (("test", sizes[1]), ("valid", sizes[0])):
        missing = size
        unplaced = []
        for leader in free:
            if 0 < len(members[leader]) <= missing:
                missing -= len(members[leader])
                for i in members[leader]:
                    part[i] = name
            else:
                unplaced.append(leader)
        free = unplaced
        if missing:
            notes.append(
                Message(
                    "The {part} part contains {count:,} instead of {asked:,} sentences, because groups of "
                    "near-identical sentences are not split.",
                    part="validation" if name == "valid" else name,
                    count=size - missing,
                    asked=size,
                )
            )

    def chosen(name: str) -> list[Segment]:
        return [segment for segment, where in zip(segments, part, strict=True) if where == name]

    return Split(train=chosen("train"), valid=chosen("valid"), test=chosen("test"), notes=notes)


def _sizes(total: int, valid: int, test: int, notes: list[str]) -> tuple[int, int]:
    """(valid, test) sizes that leave four fifths for training, with at least one sentence per part if there are enough."""
    requested = valid + test
    limit = max(int(total * HELD_OUT), min(2 if test else 1, total - 1), 0)
    if requested <= limit:
        return valid, test
    given_test = min(test, max(1, round(limit * test / requested))) if test and limit > bool(valid) else 0
    given_valid = limit - given_test if valid else 0
    notes.append(
        Message(
            "The corpus has only {total:,} sentences, so {valid:,} instead of {asked:,} are held out for validation{test}.",
            total=total,
            valid=given_valid,
            asked=valid,
            test=Message(" and {count:,} instead of {asked:,} for the test", count=given_test, asked=test) if test else "",
        )
    )
    return given_valid, given_test
