"""The main job: from a user's sentences to a plugin, in steps that are done once.

    samples -> phrases -> what the method makes of them -> sentence pairs -> training -> evaluation -> bundle

Phrases are only found for a method that needs them; pairs come before the method's turn where it needs those.

A workspace is a folder; each step leaves files there and a stamp of what it was made from in steps.json. Called again,
steps whose stamp still holds are skipped, and an interrupted training goes on from its checkpoint.

Several runs can share a workspace: samples, phrases and pairs are made once for all of them, and what belongs to a run alone
(method, training, datastore, summary) lies in a folder of its own, so that none destroys what another has made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import CorpusError, InputError
from engine.files import write_json
from engine.general import general_pairs
from engine.measured import evaluated, weights_digest
from engine.paces import Clock, Paces, note_run
from engine.progress import Progress
from engine.request import CustomizeRequest, knn_config, method_config, training_config
from engine.settings import Settings
from engine.stamps import Stamps, digest
from engine.steps import (
    FEWEST,
    STEPS,
    checked,
    find_phrases,
    held,
    load_pair,
    make_pairs,
    read_samples,
    split_samples,
    without_excluded,
)

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel, LanguagePair
    from engine.corpora import Corpus
    from engine.decoding.knn.options import KnnOptions
    from engine.methods import Artefacts, Method
    from engine.methods.samples import Samples
    from engine.plugins import Plugin
    from engine.training import TrainingOptions
    from engine.training.loop import Result
    from engine.training.watch import Watch

__all__ = ["CustomizeRequest", "customize", "method_config", "prepare", "training_config"]


def prepare(
    request: CustomizeRequest, workspace: Path, progress: Progress | None = None, settings: Settings | None = None, *,
    after_samples: Callable[[Corpus, LanguagePair], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The first two steps, as done after an upload: samples read, phrases found. Returns their counts.

    `after_samples` is called between them, for what should not wait for the parser.
    """
    from engine.settings import load_settings

    progress, settings = progress or Progress(), settings or load_settings()
    request = checked(request)
    with held(workspace):
        stamps = Stamps(workspace)
        corpus = read_samples(request, workspace, stamps, progress)
        train, valid = split_samples(corpus)
        pair = load_pair(request, settings)
        if after_samples is not None:
            after_samples(corpus, pair)
        phrases = find_phrases(request, train, valid, pair.forward, stamps, progress, settings)
    return {"sentences": len(corpus), "phrases": len(phrases), "parser": phrases.parser}


def customize(
    request: CustomizeRequest,
    workspace: Path,
    progress: Progress | None = None,
    settings: Settings | None = None,
    *,
    run: Path | None = None,
    until: str = "bundle",
) -> dict[str, Any]:
    """The whole main job; returns a summary of counts, figures and times, also kept in summary.json.

    `run`: the folder of what belongs to this run alone, where several share the workspace; else the workspace.
    `until` ("samples", "phrases", "pairs", "memory", "training", "evaluation", "bundle") ends it after that step with what
    is known then.
    Raises a TailorError with one sentence on bad input, Cancelled when the user stops it; finished steps stay.
    """
    from engine.settings import load_settings

    progress, settings = progress or Progress(), settings or load_settings()
    request = checked(request)
    if not request.output and until == "bundle":
        raise InputError("output is needed: the bundle to write, as PLUGIN.zip.")
    begin = time.monotonic()
    with held(workspace):
        return run_steps(request, workspace, run, progress, settings, begin, until)


def run_steps(
    request: CustomizeRequest, workspace: Path, run: Path | None, progress: Progress, settings: Settings, begin: float,
    until: str,
) -> dict[str, Any]:  # fmt: skip
    from engine.base.precision import check_trainable
    from engine.methods import get_method
    from engine.methods.samples import Samples
    from engine.phrases.exclusions import Exclusions
    from engine.plugins import Plugin, export_bundle

    method, config, training = get_method(request.method), method_config(request), training_config(request)
    needs = method.capabilities
    stamps, folder = Stamps(workspace, shared=run is not None), run or workspace
    folder.mkdir(parents=True, exist_ok=True)
    own = Stamps(folder) if run is not None else stamps
    times: dict[str, float] = {}

    @contextlib.contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        times[step] = round(time.monotonic() - start, 1)

    progress = clock = Clock(progress)
    with timed("samples"):
        corpus = read_samples(request, workspace, stamps, progress)
        train, valid = split_samples(corpus)
    if until == "samples":
        return {"sentences": len(corpus), "seconds": times}
    with timed("loading"):
        pair = load_pair(request, settings)
    if needs.trains:
        check_trainable(pair.forward)
    exclusions = Exclusions.load(workspace)
    excluded = exclusions.holder(request.target)
    samples = Samples(
        pair, [one for one in train if not excluded(one.text)], valid, folder / "method", settings
    )  # sentences of phrases that the user left out are not there for any method
    check_samples(samples, method)

    def pairs() -> None:
        with timed("pairs"):
            wanted = train if needs.trains or needs.needs_pairs or request.knn else []
            samples.sentence_pairs = make_pairs(wanted, valid, pair, training.keep_pairs, stamps, progress, exclusions)

    if needs.needs_phrases:
        with timed("phrases"):
            found = find_phrases(request, train, valid, pair.forward, stamps, progress, settings)
            samples.phrases = without_excluded(found, exclusions, request.target)
    if until == "phrases":
        return {"phrases": len(samples.phrases) if samples.phrases else 0, "seconds": times}
    if needs.needs_pairs or until == "pairs":
        pairs()
    if until == "pairs":
        return {"pairs": len(samples.pairs("train")), "seconds": times}
    with timed("memory"):
        made_from: list[Any] = [stamps.used["phrases"] if needs.needs_phrases else stamps.get("samples")]
        made_from += [stamps.used["pairs"], training.keep_pairs] if needs.needs_pairs else [""]
        left_out = exclusions.stamp() if needs.needs_phrases else exclusions.sentence_stamp()
        made_from += [digest(left_out)] if left_out else []  # nothing where nothing is: older stamps hold
        artefacts = prepare_method(samples, method, config, made_from, own, progress)
    config = artefacts.config or config
    sizes = artefacts.memory.sizes if artefacts.memory else []
    if until == "memory":
        return {"memory": sizes, "seconds": times}
    if not needs.needs_pairs:
        pairs()
    with timed("training"):
        watch = watched(samples, training.watch, progress) if needs.trains and training.watch else None
        made_from = [own.get("method"), stamps.used["pairs"]]
        module, result = trained(samples, method, artefacts, config, training, folder, made_from, watch, own, progress)
    if until == "training":
        return {**(dataclasses.asdict(result) if result else {}), "times": times}
    plugin, carried = Plugin(method, module, {}), Carried()
    if request.knn:
        with timed("knn"):
            carried = add_datastore(samples, plugin, knn_config(request), folder, stamps.used["pairs"], own, progress)
    with timed("evaluation"):
        texts = [segment.text for segment in corpus.segments]
        decoding, metrics = evaluated(samples, plugin, texts, stamps.used["pairs"], own, progress)
    if until == "evaluation":
        return {"decoding": decoding, "metrics": metrics, "seconds": times}
    if result:
        metrics |= {
            "validation_loss_before": round(result.first_loss, 4),
            "validation_loss": round(result.best_loss, 4),
        }
    made = {
        "updates": result.updates, "best_update": result.best_update, "parameters": result.parameters,
    } if result else {}  # fmt: skip
    parser = samples.phrases.parser if samples.phrases else ""
    output = Path(request.output)
    export_bundle(
        output,
        name=request.name or output.stem,
        base=pair.forward,
        method=method,
        config=config,
        module=module,
        files={**artefacts.files, **carried.files},
        knn=carried.settings,
        decoding=decoding,
        provenance={
            "sentences": len(corpus),
            "phrases": sum(sizes),
            "parser": parser.split(":")[0].split(".")[0][:80],  # its advice names local folders
            "budget": request.budget,
            **made,
            "seed": training.seed,
        },
        metrics=metrics,
        with_phrases=request.with_phrases,
    )
    summary = {
        "plugin": str(output),
        "bytes": output.stat().st_size,
        "method": method.name,
        "base": pair.forward.name,
        "source": request.source,
        "target": request.target,
        "sentences": len(corpus),
        "phrases": len(samples.phrases) if samples.phrases else 0,
        "parser": parser,
        "excluded_phrases": len(exclusions.phrases),
        "excluded_sentences": len(train) - len(samples.train),
        "memory": sizes,
        "training_pairs": len(samples.pairs("train")),
        "validation_pairs": len(samples.pairs("valid")),
        **made,
        "stopped_by": result.stopped_by if result else "",
        "device": device_line(pair.forward),
        "decoding": decoding,
        "metrics": metrics,
        **({"knn": carried.figures} if carried.figures else {}),
        "warnings": corpus.report.warnings,
        "seconds": {**times, "total": round(time.monotonic() - begin, 1)},
    }
    write_json(folder / "summary.json", summary, "the summary")
    clock.stop()
    note_run(
        Paces.of(settings, pair.forward),
        request,
        samples,
        training,
        result,
        times,
        clock.seconds,
        stamps,
        own,
        sum(sizes),
    )
    return summary


def check_samples(samples: Samples, method: Method) -> None:
    """Raises CorpusError when the samples lack what the method needs, saying what is missing."""
    needs = method.capabilities
    if len(samples.train) < FEWEST // 2:
        raise CorpusError(
            f"Only {len(samples.train)} sentences are left beside those of the phrases that you left out. Take some back."
        )
    lone = sum(segment.source is None for segment in samples.train)
    if needs.needs_bilingual and lone:
        raise CorpusError(
            f"The method {method.name} needs samples with their sources; {lone} of {len(samples.train)} sentences have none. "
            "Give a table of source and target, or choose a method that needs the target side alone."
        )
    if len(samples.domains) < needs.needs_domains:
        raise CorpusError(
            f"The method {method.name} needs samples of {needs.needs_domains} domains or more; there "
            f"{'is one' if len(samples.domains) == 1 else f'are {len(samples.domains)}'}. Give a file for each domain."
        )


def prepare_method(
    samples: Samples, method: Method, config: Any, made_from: Sequence[Any], stamps: Stamps, progress: Progress
) -> Artefacts:
    """Step 3: the method's own files, in a folder that is emptied when what they are made from has changed."""
    progress.begin("Preparing the method", 2, STEPS)
    pair, folder = samples.pair, samples.workspace
    stamp = digest(
        *made_from, method.name, config.to_mapping(), pair.forward.fingerprint(), pair.backward.fingerprint()
    )
    if not stamps.holds("method", stamp):
        stamps.begin("method")
        shutil.rmtree(folder, ignore_errors=True)
        stamps.set("method", stamp)
    folder.mkdir(exist_ok=True)
    return method.prepare(samples, config, progress)


def watched(samples: Samples, count: int, progress: Progress) -> Watch:
    """What is translated while a method learns: that half of the held-out pairs on which decoding is chosen, and general text."""
    from engine.training.watch import Watch

    progress.begin("Choosing sentences to watch", 5, STEPS)
    known = [segment.text for segment in (*samples.train, *samples.valid)]
    style = [(one.source, one.target) for one in samples.pairs("valid")][::2][:count]
    return Watch(
        samples.pair.forward, style, general_pairs(samples.pair, samples.settings.assets_dir, count, but=known)
    )


def trained(
    samples: Samples, method: Method, artefacts: Artefacts, config: Any, training: TrainingOptions, run: Path,
    made_from: Sequence[str], watch: Watch | None, stamps: Stamps, progress: Progress,
) -> tuple[nn.Module, Result | None]:  # fmt: skip
    """Step 5: the module, trained where the method trains, ready for decoding."""
    import torch

    from engine.training.loop import train as train_module

    progress.begin("Training" if method.capabilities.trains else "Building", 5, STEPS)
    base, result = samples.pair.forward, None
    torch.manual_seed(training.seed)  # the module's first weights
    module = method.build(base, artefacts, config)
    if method.capabilities.trains:
        folder = run / "training"
        stamp = digest(*made_from, training.to_mapping(), samples.settings.precision)
        if not stamps.holds("training", stamp):
            stamps.begin("training")
            shutil.rmtree(folder, ignore_errors=True)
            stamps.set("training", stamp)
        result = train_module(
            base,
            method,
            module,
            method.encode(base, samples, "train", progress),
            method.encode(base, samples, "valid", progress),
            training,
            folder,
            precision=samples.settings.precision,
            watch=watch,
            progress=progress,
        )
        method.complete(module)
    method.finish(module)
    return module, result


@dataclasses.dataclass(frozen=True)
class Carried:
    """A datastore that goes into the bundle beside what the method made: files, settings, figures; nothing by default."""

    files: dict[str, Path] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)


def add_datastore(
    samples: Samples, plugin: Plugin, options: KnnOptions, run: Path, pairs: str, stamps: Stamps, progress: Progress
) -> Carried:
    """A datastore of the training pairs by the customized base, which the plugin decodes with from now on.

    Its settings are chosen on that half of the held-out pairs on which decoding is chosen too, so that the comparison with the
    base stays fair.
    """
    from engine.decoding.knn.make import make_knn

    progress.begin("Recording the datastore", 5, STEPS)
    folder = run / "knn"
    stamp = digest(stamps.get("method"), pairs, weights_digest(plugin.module), options.to_mapping())
    if not stamps.holds("knn", stamp):
        stamps.begin("knn")
        shutil.rmtree(folder, ignore_errors=True)
        stamps.set("knn", stamp)
    folder.mkdir(exist_ok=True)
    plugin.knn, files, figures = make_knn(
        samples.pair.forward, samples.pairs("train"), samples.pairs("valid")[::2], options, folder, plugin, progress
    )
    return Carried(files, plugin.knn.options.to_mapping(), figures)


def device_line(base: BaseModel) -> str:
    """The device and its memory, as "CPU, 2 cores, 14.2 of 23.4 GiB free"."""
    from engine.devices import describe_device

    about = describe_device(base.device)
    return f"{about['name']}, {about['free'] / 2**30:.1f} of {about['total'] / 2**30:.1f} GiB free"
