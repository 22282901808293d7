"""Back-translation: whole sentences by beam search, and clause by clause if the base gets lost in the sentence.

Beam search over the whole sentence gives the better source, but a weak model repeats itself on long sentences, and such a
source is useless. The output shows which of the two a sentence needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from engine.base.decoding_options import Decoding
from engine.base.model import BaseModel
from engine.core.progress import Progress, Quiet

# 4 hypotheses take half as long again without better sources. No guard: repetitive output is translated clause by clause
# instead.
WHOLE = Decoding(beam=2, max_length_ratio=1.6, guard=False)
REPEATED = 3  # occurrences of the same four pieces from which a translation counts as repetitive
CUT_OFF = 0.95  # of the maximum length that the search allows; a translation this long was cut off


def write_back(base: BaseModel, texts: Sequence[str], partial: Path | None, progress: Progress) -> list[str]:
    """Translate all texts with the reverse model `base`. Raises Cancelled if `progress` is cancelled.

    `partial` and a file beside it store finished parts, as in `back_translate_all`.
    """
    from engine.decoding.resumable import back_translate_all

    sources = back_translate_all(base, texts, partial, progress, WHOLE, keep=True)
    lost = [i for i, lone in enumerate(loses_thread(base, texts, sources)) if lone]
    clauses = partial.with_suffix(".clauses") if partial is not None else None
    again = back_translate_all(base, [texts[i] for i in lost], clauses, Quiet(progress))
    for i, source in zip(lost, again, strict=True):
        sources[i] = source
    if partial is not None:
        partial.unlink(missing_ok=True)
    return sources


def loses_thread(base: BaseModel, texts: Sequence[str], translations: Sequence[str]) -> list[bool]:
    """Which translations repeat four pieces more than twice, reach the maximum length of the search or are empty."""
    source_ids, written = base.encode(list(texts)), base.encode_target(list(translations))
    results = []
    for text, ids, pieces in zip(texts, source_ids, written, strict=True):
        repeats = Counter(tuple(pieces[i : i + 4]) for i in range(len(pieces) - 3))
        long = len(pieces) >= CUT_OFF * (WHOLE.max_length_ratio * len(ids) + 8)
        results.append(bool(text.strip()) and (len(pieces) < 2 or long or max(repeats.values(), default=0) >= REPEATED))
    return results
