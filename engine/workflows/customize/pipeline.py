"""The main job: from a user's sentences to a plugin, in steps that are done once.

    samples -> phrases -> preparation of the method -> sentence pairs -> training -> evaluation -> bundle

Phrases are only extracted for a method that needs them; pairs are made before the method's preparation if it needs them.

A workspace is a folder. Each step leaves files there and a key of its inputs in steps.json. When called again, steps with an
unchanged key are skipped, and an interrupted training resumes from its checkpoint.

Several runs can share a workspace: samples, phrases and pairs are made once for all of them. Files of a single run (method,
training, datastore, summary) are in a separate folder, so that runs do not overwrite each other.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from engine.base import LanguagePair
from engine.base.precision import check_trainable
from engine.core.progress import Progress
from engine.core.settings import Settings, load_settings
from engine.core.step_cache import StepCache, content_hash
from engine.corpora import Corpus
from engine.errors import CorpusError, InputError
from engine.evaluation.general_text import general_pairs
from engine.messages import Message
from engine.methods import Method, get_method
from engine.methods.data import Samples
from engine.phrases.exclusions import Exclusions
from engine.plugins import Plugin
from engine.training.loop import Trainer
from engine.training.probe import TranslationProbe
from engine.workflows.customize.domain_filter import add_domain_filter, settle_replay
from engine.workflows.customize.metrics import evaluate_step, hash_weights
from engine.workflows.customize.replay import with_replay
from engine.workflows.customize.request import CustomizeRequest, candidates, knn_config, method_config, training_config
from engine.workflows.customize.run import Datastore, Run, Step
from engine.workflows.customize.selection import best_of, keep_best, progress_of_trial
from engine.workflows.customize.steps import (
    FEWEST,
    STEPS,
    find_phrases,
    kept_share,
    load_pair,
    make_pairs,
    pairs_all,
    read_samples,
    split_samples,
    validated,
    without_excluded,
    workspace_lock,
)
from engine.workflows.customize.summary import summarize, write_bundle
from engine.workflows.throughput import NumberedProgress, record_run


def read_alone(request: CustomizeRequest, workspace: Path, progress: Progress) -> None:
    """Run only the first step, as after an upload. Raises CorpusError if the samples are too few or too similar."""
    request = validated(request)
    with workspace_lock(workspace):
        split_samples(read_samples(request, workspace, StepCache(workspace), progress))


def prepare(
    request: CustomizeRequest, workspace: Path, progress: Progress | None = None, settings: Settings | None = None, *,
    as_read: bool = False, pair: LanguagePair | None = None, after_samples: Callable[[Corpus, LanguagePair], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the first two steps: read the samples, find phrases. Returns their counts.

    `as_read`: use the samples as last read into the workspace, whatever became of their files.
    `pair`: the request's base, if it is already loaded.
    `after_samples` is called between the steps, for work that should not wait for the parser.
    """
    progress, settings = progress or Progress(), settings or load_settings()
    request = validated(request)
    with workspace_lock(workspace):
        cache = StepCache(workspace)
        corpus = read_samples(request, workspace, cache, progress, as_read=as_read)
        train, valid = split_samples(corpus)
        pair = pair or load_pair(request, settings)
        if after_samples is not None:
            after_samples(corpus, pair)
        phrases = find_phrases(request, train, valid, pair.forward, cache, progress, settings)
    return {"sentences": len(corpus), "phrases": len(phrases), "parser": phrases.parser}


def customize(
    request: CustomizeRequest,
    workspace: Path,
    progress: Progress | None = None,
    settings: Settings | None = None,
    *,
    run: Path | None = None,
    stop_after: str = "bundle",
) -> dict[str, Any]:
    """Run the whole main job; returns a summary of counts, figures and times, also stored in summary.json.

    `run`: the folder of files that belong to this run only, if several share the workspace; by default the workspace.
    `stop_after` ("memory", "training", "bundle") stops after that step and returns the results so far.
    Raises a TailorError with one sentence on bad input, Cancelled when the user stops it; finished steps remain.
    """
    progress, settings = progress or Progress(), settings or load_settings()
    request = validated(request)
    if not request.output and stop_after == "bundle":
        raise InputError("output is required: the bundle to write, such as PLUGIN.zip.")
    begin = time.monotonic()
    with workspace_lock(workspace):
        cache, folder = StepCache(workspace, shared=run is not None), run or workspace
        folder.mkdir(parents=True, exist_ok=True)
        run_cache = StepCache(folder) if run is not None else cache
        now = Run(request, workspace, folder, settings, NumberedProgress(progress, STEPS), cache, run_cache, begin)
        requests = candidates(request)
        if stop_after != "bundle":  # a partial run: of the method that has a memory, if possible
            requests = [candidate for candidate in requests if candidate.method == "memory_adapter"] or requests
        if len(requests) == 1:
            now.request = requests[0]
            execute(now, (*BEFORE_CHOICE, *OF_A_METHOD, *AFTER_CHOICE), stop_after)
        else:
            now.automatic = True
            now.progress = progress_of_trial(progress, 0, len(requests))
            execute(now, BEFORE_CHOICE)
            now = best_of(now, requests, lambda trial: execute(trial, OF_A_METHOD), add_datastore)
            execute(now, AFTER_CHOICE)
        if stop_after == "bundle":
            record_run(now)
        if now.folder != folder:
            keep_best(now, folder)
        return summarize(now, stop_after)


def execute(run: Run, steps: Sequence[Step], stop_after: str = "") -> None:
    """Run the needed steps in order, up to the one named `stop_after`."""
    for step in steps:
        if step.needed(run):
            with run.timed(step.name):
                step.do(run)
        if step.name == stop_after:
            break


# -- the steps


def read(run: Run) -> None:
    """The samples, cleaned and split."""
    run.corpus = read_samples(run.request, run.workspace, run.cache, run.progress)
    run.train, run.valid = split_samples(run.corpus)


def load(run: Run) -> None:
    """The base and its reverse model."""
    run.pair = load_pair(run.request, run.settings)


def set_up(run: Run) -> None:
    """The method with its settings, and the samples that it may use."""
    run.method, run.config = get_method(run.request.method), method_config(run.request)
    run.training = training_config(run.request)
    if needs_pairs_first(run):
        run.progress.move("Preparing the method", "Translating the sources there and back")
    if run.method.capabilities.trains:
        check_trainable(run.pair.forward)
    run.exclusions = Exclusions.load(run.workspace)
    excluded = run.exclusions.holder(run.request.target)
    # No method uses sentences that the user excluded with their phrases.
    selected = [segment for segment in run.train if not excluded(segment.text)]
    run.samples = Samples(run.pair, selected, run.valid, run.folder / "method", run.settings)
    check_samples(run.samples, run.method)


def find(run: Run) -> None:
    """Phrases of the samples."""
    phrases = find_phrases(run.request, run.train, run.valid, run.pair.forward, run.cache, run.progress, run.settings)
    run.samples.phrases = without_excluded(phrases, run.exclusions, run.request.target)


def pair_sentences(run: Run) -> None:
    """Sentence pairs; missing sources are written by the reverse base."""
    needs = run.method.capabilities
    keep = kept_share(needs, run.training)
    run.samples.sentence_pairs = make_pairs(
        run.train if pairs_all(needs, run.training, run.request.knn) else [],
        run.valid, run.pair, keep, run.cache, run.progress, run.exclusions, run.settings.assets_dir,
    )  # fmt: skip


def prepare_method(run: Run) -> None:
    """The method's files, in a folder that is emptied when their inputs have changed."""
    run.progress.begin("Preparing the method")
    method, config, pair = run.method, run.config, run.pair
    phrases = method.reads_phrases(config)
    made_from: list[Any] = [run.cache.used["phrases"] if phrases else run.cache.get("samples")]
    made_from += [run.cache.used["pairs"], run.training.keep_pairs] if needs_pairs_first(run) else [""]
    left_out = run.exclusions.content() if phrases else run.exclusions.sentence_content()
    made_from += [content_hash(left_out)] if left_out else []  # omitted if empty, so that older keys remain valid
    made_from += [method.name, until_trained(run.request), pair.forward.fingerprint(), pair.backward.fingerprint()]
    folder = run.samples.workspace
    renew(run.run_cache, "method", content_hash(*made_from), folder)
    folder.mkdir(exist_ok=True)
    run.artefacts = method.prepare(run.samples, config, run.progress)
    run.config = run.artefacts.config or config


def train(run: Run) -> None:
    """The module, trained if the method trains, ready for decoding."""
    if run.method.capabilities.trains:
        settle_replay(run)
    method, training, base = run.method, run.training, run.pair.forward
    watch = None
    if method.capabilities.trains and training.watch:
        watch = make_probe(run.samples, training.watch, run.progress)
    pairs = with_replay(run, method.encode(base, run.samples, "train", run.progress)) if method.capabilities.trains else None
    run.progress.begin("Training" if method.capabilities.trains else "Building")
    torch.manual_seed(training.seed)  # for the module's initial weights
    run.module = method.build(base, run.artefacts, run.config)
    if pairs is not None:
        folder = run.folder / "training"
        timeless = training.replace(max_minutes=None).to_mapping()
        del timeless["domain_filter"]  # does not affect training
        made_from = [run.run_cache.get("method"), run.cache.used["pairs"], timeless, run.settings.precision]
        renew(run.run_cache, "training", content_hash(*made_from), folder)
        held_out = method.encode(base, run.samples, "valid", run.progress)
        trainer = Trainer(base, method, run.module, pairs, held_out, training, folder, run.settings.precision)
        run.result = trainer.run(watch, run.progress)
        method.after_training(run.module)
    method.prepare_for_inference(run.module)
    run.plugin = Plugin(method, run.module, {})


def add_datastore(run: Run) -> None:
    """Add a datastore of the samples by the customized base, which the plugin decodes with from now on.

    Its settings are chosen on the half of the held-out pairs on which decoding is chosen too, so that the comparison with the base
    stays fair.
    """
    from engine.methods.knn.build import make_knn

    run.progress.begin("Recording the datastore")
    options, folder = knn_config(run.request), run.folder / "knn"
    made_from = [run.run_cache.get("method"), run.cache.used["pairs"], hash_weights(run.module), options.to_mapping()]
    renew(run.run_cache, "knn", content_hash(*made_from), folder)
    folder.mkdir(exist_ok=True)
    remembered = [pair for pair in run.samples.pairs("memory") if pair.source]
    run.plugin.knn, files, metrics = make_knn(
        run.pair.forward, remembered, run.samples.pairs("valid")[::2], options, folder, run.plugin, run.progress,
        lambda: run.samples.general_pairs(run.progress),
    )  # fmt: skip
    run.datastore = Datastore(files, run.plugin.knn.options.to_mapping(), metrics)


def evaluate(run: Run) -> None:
    """Decoding settings, and figures of the plugin compared with the base alone."""
    texts = [segment.text for segment in run.corpus.segments]
    run.decoding, run.metrics = evaluate_step(run.samples, run.plugin, texts, run.cache.used["pairs"], run.run_cache, run.progress)
    if run.result:
        run.metrics |= {
            "validation_loss_before": round(run.result.first_loss, 4),
            "validation_loss": round(run.result.best_loss, 4),
        }


def needs_pairs_first(run: Run) -> bool:
    """Whether the method's preparation needs sentence pairs, all or only the held-out ones."""
    return run.method.capabilities.needs_pairs or run.method.capabilities.needs_held_out


BEFORE_CHOICE = (Step("samples", read), Step("loading", load))
OF_A_METHOD = (
    Step("loading", set_up),
    Step("phrases", find, lambda run: run.method.reads_phrases(run.config)),
    Step("pairs", pair_sentences, needs_pairs_first),
    Step("memory", prepare_method),
    Step("pairs", pair_sentences, lambda run: not needs_pairs_first(run)),
    Step("training", train),
    Step("knn", add_datastore, lambda run: bool(run.request.knn)),
    Step("domain filter", add_domain_filter, lambda run: run.training.domain_filter == "on"),
)
AFTER_CHOICE = (Step("evaluation", evaluate), Step("bundle", write_bundle))


# -- helpers


def until_trained(request: CustomizeRequest) -> dict[str, object]:
    """The method's settings without a requested `shrink`, which has no effect until training has ended."""
    options = {name: value for name, value in request.method_options.items() if name != "shrink"}
    return method_config(request.replace(method_options=options)).to_mapping()


def renew(cache: StepCache, step: str, key: str, folder: Path) -> None:
    """Empty the step's folder if it was made from other inputs."""
    if not cache.is_fresh(step, key):
        cache.invalidate(step)
        shutil.rmtree(folder, ignore_errors=True)
        cache.mark_done(step, key)


def check_samples(samples: Samples, method: Method) -> None:
    """Raises CorpusError if the samples lack something that the method needs."""
    needs = method.capabilities
    if len(samples.train) < FEWEST // 2:
        raise CorpusError(
            "Only {count} sentences remain after removing those that contain excluded phrases. Include some phrases again.",
            count=len(samples.train),
        )
    lone = sum(segment.source is None for segment in samples.train)
    if needs.needs_bilingual and lone:
        raise CorpusError(
            "The method {method} needs samples with their sources; {lone} of {count} sentences have none. "
            "Provide a table of source and target, or choose a method that needs only the target side.",
            method=method.name, lone=lone, count=len(samples.train),
        )  # fmt: skip
    if len(samples.domains) < needs.needs_domains:
        raise CorpusError(
            "The method {method} needs samples of {needed} or more domains; there {there}. Provide a file for each domain.",
            method=method.name,
            needed=needs.needs_domains,
            there=Message("is one") if len(samples.domains) == 1 else Message("are {count}", count=len(samples.domains)),
        )


def make_probe(samples: Samples, count: int, progress: Progress) -> TranslationProbe:
    """The probe of a training: the half of the held-out pairs on which decoding is chosen, and general text."""
    progress.begin("Choosing the monitored sentences")
    texts = [segment.text for segment in (*samples.train, *samples.valid)]
    style = [(pair.source, pair.target) for pair in samples.pairs("valid")][::2][:count]
    return TranslationProbe(
        samples.pair.forward, style, general_pairs(samples.pair.backward, samples.settings, count, exclude=texts)
    )
