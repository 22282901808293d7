"""Method `auto`: several methods are tried on the same samples, alone and with kNN decoding on top, and the best is kept. One that
costs general text too much is tried behind a domain filter, and if that is not enough, weakened.

The best method is chosen on the half of the held-out samples on which settings are chosen too, by the mean of BLEU and chrF, or for
kNN decoding on top of a method by likelihood, among those that cost general text at most `COST` BLEU. The other half is reserved
for the comparison with the base.
"""

from __future__ import annotations

import copy
import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from engine.core.atomic_files import read_json, write_json
from engine.core.progress import Progress
from engine.core.step_cache import StepCache, content_hash
from engine.evaluation.general_text import general_pairs
from engine.evaluation.metrics import metrics
from engine.plugins import Plugin
from engine.workflows.customize.domain_filter import filtered
from engine.workflows.customize.metrics import MOST, hash_weights
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.customize.run import TRIED, Run, Trial
from engine.workflows.customize.steps import STEPS
from engine.workflows.throughput import NumberedProgress, record_run

FILE = "trial.json"
COST = 0.5  # BLEU on general text that a method may cost
WEAKER = 0.4  # `shrink` of a weakened method: keeps news within `COST` of the base (bench/EXPERIMENTS.md)
MARGIN = 0.3  # minimum gain of a later trial in the mean of BLEU and chrF: simpler methods come first
GAIN = 0.02  # nats per token by which a datastore on top of a method must lower the held-out loss
STEPS_OF_A_TRIAL = (*STEPS[:-2], "Comparing methods", "Recording the datastore")  # the last one is for kNN on top
BASE = "base"  # the trial of the base alone


def progress_of_trial(inner: Progress, number: int, count: int) -> NumberedProgress:
    """Numbers the steps of one of `count` trials, or after them those of the chosen one, in one sequence."""
    places = STEPS_OF_A_TRIAL if number < count else STEPS[-2:]
    return NumberedProgress(inner, places, number * len(STEPS_OF_A_TRIAL), count * len(STEPS_OF_A_TRIAL) + 2)


def best_of(
    run: Run, requests: Sequence[CustomizeRequest], train: Callable[[Run], None], add_datastore: Callable[[Run], None]
) -> Run:
    """The trained run of the best method, with `tried` filled in. `run` has its samples and base; `train` does the steps of a
    method, `add_datastore` those of kNN decoding on top of it.
    """
    texts = [segment.text for segment in run.corpus.segments]
    general = general_pairs(run.pair.backward, run.settings, exclude=texts)
    best: Run | None = None
    trials: list[Trial] = []
    for number, request in enumerate(requests):
        start = time.monotonic()
        for trial in trial_variants(branch(run, request, number, len(requests)), train, add_datastore):
            if best is None:
                trials.append(measure(trial, None, general, time.monotonic()))
            trials.append(measure(trial, trial.plugin, general, start))
            if best is None or trials[-1] is chosen(trials):
                best = trial
            for milden in (filtered, weakened):
                if loss(trials[-1], trials[0]) > COST and (milder := milden(trial)) is not None:
                    trials.append(measure(milder, milder.plugin, general, start))
                    best = milder if trials[-1] is chosen(trials) else best
        run.times[request.method] = round(time.monotonic() - start, 1)
    assert best is not None
    best.times, best.progress = run.times, progress_of_trial(run.progress.inner, len(requests), len(requests))
    best.tried = [dataclasses.replace(entry, chosen=entry is chosen(trials)) for entry in trials]
    return best


def keep_best(best: Run, folder: Path) -> None:
    """Move the chosen method's files to where a run of only that method leaves them, and remove the others."""
    for file in best.folder.iterdir():
        target = folder / file.name
        if target.is_dir():
            shutil.rmtree(target)
        file.replace(target)
    shutil.rmtree(folder / TRIED)
    best.folder, best.run_cache = folder, StepCache(folder)


def branch(run: Run, request: CustomizeRequest, number: int, count: int) -> Run:
    """A run of one method in a separate folder, with the samples and the base of `run`."""
    folder = run.folder / TRIED / request.method
    folder.mkdir(parents=True, exist_ok=True)
    trial = copy.copy(run)
    trial.request, trial.folder, trial.run_cache = request, folder, StepCache(folder)
    trial.progress, trial.times = progress_of_trial(run.progress.inner, number, count), dict(run.times)
    return trial


def trial_variants(trial: Run, train: Callable[[Run], None], add_datastore: Callable[[Run], None]) -> Iterator[Run]:
    """The trial's method as requested, then with kNN decoding on top if that was left open."""
    train(trial)
    record_run(trial)
    yield trial
    capabilities = trial.method.capabilities
    stacks = capabilities.offers_likelihood and (capabilities.trains or not capabilities.has_memory)
    if trial.request.knn or not (stacks and find_spec("faiss")):
        return
    stacked = copy.copy(trial)
    stacked.request = trial.request.replace(knn=True)
    stacked.plugin = Plugin(trial.method, trial.module, {}, domain_filter=trial.plugin.domain_filter)
    add_datastore(stacked)
    yield stacked


def weakened(run: Run) -> Run | None:
    """The run with its method scaled down to a `shrink` of `WEAKER`; None if the method has no such setting or a value that is not
    higher, or with a datastore, which was recorded with the method as it is.
    """
    share = getattr(run.config, "shrink", 0.0)
    if share <= WEAKER or run.plugin.knn is not None:
        return None
    result = copy.copy(run)
    result.request = run.request.replace(method_options={**run.request.method_options, "shrink": WEAKER})
    result.config = run.config.replace(shrink=WEAKER)
    result.module = run.method.build(run.pair.forward, run.artefacts, result.config)
    result.module.load_state_dict(run.module.state_dict())
    run.method.shrink(result.module, WEAKER / share)
    run.method.prepare_for_inference(result.module)
    result.plugin = Plugin(run.method, result.module, {}, domain_filter=run.plugin.domain_filter)
    return result


def measure(run: Run, plugin: Plugin | None, general: list[tuple[str, str]], start: float) -> Trial:
    """Score a plugin, or the base alone, on the held-out samples and on general text; stored in trial.json."""
    from engine.decoding.translate import translate

    base, samples = run.pair.forward, run.samples
    knn = plugin.knn.options.to_mapping() if plugin is not None and plugin.knn is not None else None
    weights = hash_weights(plugin.module) if plugin is not None else ""
    has_filter = plugin is not None and plugin.domain_filter is not None
    key = content_hash(
        run.cache.used.get("pairs"), run.run_cache.get("method"), weights, knn, base.fingerprint(), *["filter"] * has_filter
    )
    cached = read_json(run.folder / FILE)
    if key in cached:
        return Trial(**cached[key])
    run.progress.begin("Comparing methods")
    style = [(pair.source, pair.target) for pair in samples.pairs("valid")][::2][:MOST]
    translations = translate(base, [source for source, _ in style + general], plugin, progress=run.progress)

    def score(metric: str, pairs: Sequence[tuple[str, str]], lines: Sequence[str]) -> float:
        return round(metrics(base.target)[metric].corpus_score(lines, [[target for _, target in pairs]]).score, 2)

    result = Trial(
        method=run.request.method if plugin is not None else BASE,
        knn=plugin is not None and plugin.knn is not None,
        bleu=score("BLEU", style, translations[: len(style)]),
        chrf=score("chrF2", style, translations[: len(style)]),
        general_bleu=score("BLEU", general, translations[len(style) :]) if general else None,
        seconds=round(time.monotonic() - start, 1),
        domain_filter=has_filter,
        shrink=run.config.shrink if plugin is not None and "shrink" in run.request.method_options else None,
        gain=gain_of(run) if plugin is not None and plugin.knn is not None else None,
    )
    write_json(run.folder / FILE, {**cached, key: dataclasses.asdict(result)}, "what was measured of a method")
    return result


def chosen(trials: Sequence[Trial]) -> Trial:
    """The trial to keep, of trials of which the first is the base's; if all cost general text too much, the one that costs it
    least.
    """
    base, *others = trials
    harmless = [trial for trial in others if loss(trial, base) <= COST] or [min(others, key=lambda trial: loss(trial, base))]
    best = harmless[0]
    for trial in harmless[1:]:
        if is_better(trial, best):
            best = trial
    return best


def is_better(trial: Trial, other: Trial) -> bool:
    """Whether to prefer a later trial. A datastore on top of the other trial's method is judged by the likelihood of the held-out
    translations, which shows smaller differences than the BLEU of sixty sentences (bench/EXPERIMENTS.md); all else by BLEU and
    chrF.
    """
    if trial.gain is not None and trial.method == other.method and not other.knn:
        return trial.gain > GAIN
    return (trial.bleu + trial.chrf) / 2 > (other.bleu + other.chrf) / 2 + MARGIN


def gain_of(run: Run) -> float | None:
    """The `gain` of a run's datastore over its method alone; None if it was not measured."""
    losses = run.datastore.figures
    return round(losses["loss_base"] - losses["loss"], 4) if {"loss", "loss_base"} <= losses.keys() else None


def loss(trial: Trial, base: Trial) -> float:
    """BLEU that a trial costs general text; 0 without general text."""
    return (base.general_bleu or 0.0) - (trial.general_bleu or 0.0)
