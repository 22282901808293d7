"""Plain everyday text with which it is measured what a plugin costs elsewhere: how much of general translation it forgets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from engine.evaluation.general import general_sentences

    own = {" ".join(text.split()) for text in but}
    sentences = [text for text in general_sentences(assets, pair.forward.target) if " ".join(text.split()) not in own]
    random.Random("general").shuffle(sentences)
    sentences = sentences[:count]
    sources = back_translate(pair.backward, sentences, progress=progress)
    return [(source, sentence) for source, sentence in zip(sources, sentences, strict=True) if source]
