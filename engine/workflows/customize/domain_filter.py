"""The domain filter of a run's plugin: on request, or so that `auto` can keep a method that costs general text too much."""

from __future__ import annotations

import copy

from engine.core.step_cache import content_hash
from engine.corpora.general_text import general_sentences
from engine.errors import CorpusError
from engine.evaluation.general_text import general_pairs, learnable_pairs
from engine.plugins.bundle import DOMAIN_FILTER
from engine.plugins.domain_filter import DomainFilter
from engine.workflows.customize.run import Run

LEFT = 0.9  # minimum share of general text left to the base for training without replay


def filtered(run: Run) -> Run | None:
    """The run with a domain filter before its plugin; None if there is too little text to learn one, it is switched off, or the
    plugin already has one.
    """
    may = run.training.domain_filter != "off" and run.plugin.domain_filter is None
    known = learned(run) if may else None
    if known is None:
        return None
    result = copy.copy(run)
    result.plugin = run.plugin.with_filter(known)
    return result


def settle_replay(run: Run) -> None:
    """Replace the run's replay by a domain filter if that leaves nearly all general text to the base. Replay that was explicitly
    requested is kept.
    """
    training = run.training
    may_filter = training.domain_filter == "on" or (training.domain_filter == "auto" and run.automatic)
    if not may_filter or not training.replay or "replay" in run.request.training_options:
        return
    own = [segment.text for segment in run.corpus.segments]
    general = [source for source, _ in general_pairs(run.pair.backward, run.settings, exclude=own)]
    known = learned(run) if general else None
    if known is not None and known.accepts(run.pair.forward, general).count(False) >= LEFT * len(general):
        run.training = training.replace(replay=0.0, domain_filter="on")


def learned(run: Run) -> DomainFilter | None:
    """The domain filter of the run's samples, stored in the workspace; None if there are too few samples or too little general
    text.
    """
    base, file = run.pair.forward, run.workspace / DOMAIN_FILTER
    key = content_hash(base.fingerprint(), run.pair.backward.fingerprint(), run.cache.used.get("pairs"))
    known = DomainFilter.open(run.workspace, base.d_model) if run.cache.is_fresh("domain filter", key, file) else None
    if known is None:
        run.progress.begin("Learning the domain filter")
        own = [one.source for one in run.samples.pairs("memory") if one.source]
        held_out = [one.source for one in run.samples.pairs("valid")][::2]
        known = DomainFilter.learn(base, own, general_sources(run), held_out)
        if known is None:
            return None
        run.cache.invalidate("domain filter")
        known.save(run.workspace)
        run.cache.mark_done("domain filter", key)
    return known


def general_sources(run: Run) -> list[str]:
    """General text in the source language: human-written text, and back-translations of target-language text, like the sources of
    monolingual samples. None of it is used for evaluation.
    """
    segments = [*run.train, *run.valid]
    own = [one.source for one in segments if one.source]
    plain = general_sentences(run.settings.assets_dir, run.pair.forward.source, exclude=own)
    own = [one.text for one in segments]
    learnable = learnable_pairs(run.pair, run.settings, exclude=own, progress=run.progress, max_sentences=None)
    return plain + [one.source for one in learnable]


def add_domain_filter(run: Run) -> None:
    """The step for a requested filter. Raises CorpusError if there is too little text to learn one."""
    made = filtered(run)
    if made is None:
        raise CorpusError(
            "There are too few samples, or no general text in the source language, for a domain filter. Leave it out."
        )
    run.plugin = made.plugin
