"""Choosing the decoding settings of a trained plugin on held-out sentences.

A plugin's translations may repeat themselves where the base's do not. Length and cuts are the base's own, chosen on held-out text
of all kinds: changed on a few sentences of the samples, they cost general text more than the method does (docs/how-it-works.md).
What is chosen goes into the bundle as its decoding defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin

DECODINGS: tuple[dict[str, Any], ...] = ({}, {"no_repeat_ngram": 3})
MARGIN = 0.2  # BLEU by which a later candidate must be better, so that chance does not choose


def tune_decoding(
    base: BaseModel, plugin: Plugin, pairs: Sequence[tuple[str, str]], progress: Progress
) -> dict[str, Any]:
    """The changes to the base's decoding defaults under which the plugin's translations of the pairs have the best BLEU."""
    from engine.decoding.translate import translate
    from engine.evaluation.metrics import metrics

    bleu = metrics(base.target)["BLEU"]
    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    best, chosen = float("-inf"), DECODINGS[0]
    for done, decoding in enumerate(DECODINGS):
        progress.advance(done, len(DECODINGS))
        translations = translate(base, sources, plugin, decoding=base.decoding(decoding))
        value = float(bleu.corpus_score(translations, [references]).score)
        if value > best + MARGIN:
            best, chosen = value, decoding
    progress.advance(len(DECODINGS), len(DECODINGS))
    return dict(chosen)
