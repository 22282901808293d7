"""Replay: general text among the training pairs, translated by the base, so that training leaves other text unchanged.

The targets are the frozen base's own translations, as in learning without forgetting (Li and Hoiem, 2016) and the regularised
fine-tuning of Khayrallah et al. (2018): on this text the model should stay close to the base.
"""

from __future__ import annotations

from engine.corpora.types import SentencePair
from engine.evaluation.general_text import translate_once
from engine.methods.batches import Pairs
from engine.workflows.customize.domain_filter import general_sources
from engine.workflows.customize.run import Run

MOST_COPIES = 20  # maximum copies of a general sentence per pass over the samples


def with_replay(run: Run, pairs: Pairs) -> Pairs:
    """The pairs with general text added up to the share `replay` of the target tokens; unchanged if no general sample of the source
    language is bundled or the method does not support replay.
    """
    share = run.training.replay
    if not share or not run.method.capabilities.replays:
        return pairs
    sentence_pairs = [SentencePair(source, target, general=True) for source, target in general_translations(run)]
    general = Pairs.encode(run.pair.forward, sentence_pairs)
    if not len(general):
        return pairs
    remaining = share / (1 - share) * sum(map(len, pairs.labels))
    added: list[int] = []
    while remaining > 0 and len(added) < MOST_COPIES * len(general):
        added.append(len(added) % len(general))
        remaining -= len(general.labels[added[-1]])
    return Pairs(
        pairs.sources + [general.sources[i] for i in added],
        pairs.labels + [general.labels[i] for i in added],
        pairs.sentences + [general.sentences[i] for i in added],
    )


def general_translations(run: Run) -> list[tuple[str, str]]:
    """General text in the source language with the base's translations, for any samples."""
    sources = general_sources(run)
    run.progress.begin("Translating general text")
    translations = translate_once(run.pair.forward, run.settings, sources, run.progress)
    return [(source, translation) for source, translation in zip(sources, translations, strict=True) if translation]
