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
    domain_filter = learned(run) if may else None
    if domain_filter is None:
        return None
    result = copy.copy(run)
    result.plugin = run.plugin.with_filter(domain_filter)
    return result


def settle_replay(run: Run) -> None:
    """Replace the run's replay by a domain filter if that leaves nearly all general text to the base. Replay that was explicitly
    requested is kept.
    """
    training = run.training
    may_filter = training.domain_filter == "on" or (training.domain_filter == "auto" and run.automatic)
    if not may_filter or not training.replay or "replay" in run.request.training_options:
        return
    texts = [segment.text for segment in run.corpus.segments]
    general = [source for source, _ in general_pairs(run.pair.backward, run.settings, exclude=texts)]
    domain_filter = learned(run) if general else None
    if domain_filter is not None and (domain_filter.accepts(run.pair.forward, general).count(False) >= LEFT * len(general)):
        run.training = training.replace(replay=0.0, domain_filter="on")


def learned(run: Run) -> DomainFilter | None:
    """The domain filter of the run's samples, stored in the workspace; None if there are too few samples or too little general
    text.
    """
    base, file = run.pair.forward, run.workspace / DOMAIN_FILTER
    key = content_hash(base.fingerprint(), run.pair.backward.fingerprint(), run.cache.used.get("pairs"))
    domain_filter = DomainFilter.open(run.workspace, base.d_model) if run.cache.is_fresh("domain filter", key, file) else None
    if domain_filter is None:
        run.progress.begin("Learning the domain filter")
        sources = [pair.source for pair in run.samples.pairs("memory") if pair.source]
        held_out = [pair.source for pair in run.samples.pairs("valid")][::2]
        domain_filter = DomainFilter.learn(base, sources, general_sources(run), held_out)
        if domain_filter is None:
            return None
        run.cache.invalidate("domain filter")
        domain_filter.save(run.workspace)
        run.cache.mark_done("domain filter", key)
    return domain_filter


def general_sources(run: Run) -> list[str]:
    """General text in the source language: human-written text, and back-translations of target-language text, like the sources of
    monolingual samples. None of it is used for evaluation.
    """
    segments = [*run.train, *run.valid]
    sources = [segment.source for segment in segments if segment.source]
    plain = general_sentences(run.settings.assets_dir, run.pair.forward.source, exclude=sources)
    texts = [segment.text for segment in segments]
    learnable = learnable_pairs(run.pair, run.settings, exclude=texts, progress=run.progress, max_sentences=None)
    return plain + [pair.source for pair in learnable]


def add_domain_filter(run: Run) -> None:
    """The step for a requested filter. Raises CorpusError if there is too little text to learn one."""
    filtered_run = filtered(run)
    if filtered_run is None:
        raise CorpusError(
            "There are too few samples, or no general text in the source language, for a domain filter. Leave it out."
        )
    run.plugin = filtered_run.plugin
