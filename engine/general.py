"""Plain everyday text with which it is measured what a plugin costs elsewhere: how much of general translation it forgets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import CorpusError
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base import LanguagePair

__all__ = ["general_pairs"]


def general_pairs(
    pair: LanguagePair, assets: Path, count: int, *, but: Sequence[str] = (), progress: Progress | None = None
) -> list[tuple[str, str]]:
    """`count` (source, sentence) pairs of the bundled general sample of the target language, always the same ones; empty
    where none is bundled. Sentences among `but` are passed over.

    The sources are the reverse model's, as those of monolingual samples are, so a figure on these pairs is good for
    comparing the base with its plugins and not with other bases.
    """
    from engine.decoding.greedy import back_translate
    from engine.methods.domain_mixing.general import general_sentences

    try:
        sentences = general_sentences(pair.forward.target, assets, but=but)
    except CorpusError:
        return []
    random.Random("general").shuffle(sentences)
    sentences = sentences[:count]
    sources = back_translate(pair.backward, sentences, progress=progress)
    return [(source, sentence) for source, sentence in zip(sources, sentences, strict=True) if source]
