"""The main job: from a user's sentences to a plugin, in steps that are done once.

    samples -> phrases -> phrase pairs, memory (by the method) -> synthetic pairs -> training -> evaluation -> bundle

A workspace is a folder; each step leaves files there and a stamp of what it was made from in steps.json. Called again,
steps whose stamp still holds are skipped, and an interrupted training goes on from its checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decoding.options import Decoding
from engine.errors import CorpusError, InputError
from engine.files import write_json, write_jsonl
from engine.languages import canonical
from engine.progress import Progress
from engine.request import CustomizeRequest, check, method_config, phrase_config, training_config
from engine.settings import Settings
from engine.stamps import Stamps, digest, digest_files

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair
    from engine.corpora import Corpus, Segment
    from engine.phrases import PhraseSet
    from engine.plugins import Plugin

__all__ = ["CustomizeRequest", "customize", "method_config", "prepare", "training_config"]

STEPS = 7
MOST = 60  # held-out sentences to choose decoding on, and as many others to compare on
FEWEST = 20  # sentences; below that nothing is left to validate on


def load_pair(request: CustomizeRequest, settings: Settings) -> LanguagePair:
    import torch

    from engine.base import LanguagePair

    if settings.threads:
        torch.set_num_threads(settings.threads)
    return LanguagePair.load(
        request.base, request.source, request.target,
        backward=request.backward, download=request.download, settings=settings,
    )  # fmt: skip


def checked(request: CustomizeRequest) -> CustomizeRequest:
    """The request with its languages' canonical tags. Raises InputError or OptionError on what cannot work."""
    check(request)
    return request.replace(source=canonical(request.source), target=canonical(request.target))


# -- steps


def read_samples(request: CustomizeRequest, workspace: Path, stamps: Stamps, progress: Progress) -> Corpus:
    """Step 1: corpus.jsonl and import_report.json."""
    from engine.corpora import Corpus, CorpusOptions, import_corpus

    stamp = digest(request.source, request.target, digest_files(request.samples), *request.domains)
    if stamps.holds("samples", stamp, workspace / "corpus.jsonl"):
        return Corpus.load(workspace)
    progress.begin("Reading samples", 0, STEPS)
    corpus = import_corpus(
        [Path(sample) for sample in request.samples], request.target, source_language=request.source,
        domains=request.domains, options=CorpusOptions(domain_from_file=len(request.samples) > 1), progress=progress,
    )  # fmt: skip
    if len(corpus) < FEWEST:
        raise CorpusError(
            f"Only {len(corpus)} sentences in {request.target} are left of {corpus.report.segments} in the samples; at least "
            f"{FEWEST} are needed, some hundreds are better."
        )
    stamps.begin("samples")
    corpus.save(workspace)
    stamps.set("samples", stamp)
    return corpus


def split_samples(corpus: Corpus) -> tuple[list[Segment], list[Segment]]:
    """Training and validation sentences: a twelfth for validation, 16 to 500, nothing alike on both sides."""
    from engine.corpora import split

    parts = split(corpus, valid=min(500, max(min(16, len(corpus) // 4), len(corpus) // 12)))
    if not parts.valid or len(parts.train) < FEWEST // 2:
        raise CorpusError("The samples are too much alike to keep some for validation. Add different sentences.")
    return parts.train, parts.valid


def find_phrases(
    request: CustomizeRequest, train: list[Segment], base: BaseModel, workspace: Path, stamps: Stamps, progress: Progress,
    settings: Settings,
) -> PhraseSet:  # fmt: skip
    """Step 2: phrases.jsonl, from the training part alone, so that validation stays honest."""
    from engine.phrases import PhraseSet, extract_phrases

    options = phrase_config(request)
    stamp = digest(stamps.get("samples"), options.to_mapping(), base.fingerprint(), *map(str, settings.parser_dirs))
    file = workspace / "phrases.jsonl"
    if stamps.holds("phrases", stamp, file):
        return PhraseSet.load(file)
    progress.begin("Finding phrases", 1, STEPS)
    found = extract_phrases(
        [segment.text for segment in train],
        request.target,
        options,
        parser_dirs=settings.parser_dirs,
        pieces=base.pieces,
        progress=progress,
    )
    stamps.begin("phrases")
    found.save(file)
    stamps.set("phrases", stamp)
    return found


def make_pairs(
    train: list[Segment], valid: list[Segment], pair: LanguagePair, keep: float, workspace: Path, stamps: Stamps,
    progress: Progress,
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # fmt: skip
    """Step 4: pairs.jsonl; sources by the frozen reverse model, but where the user gave them.

    Returns training and validation pairs; of the synthetic training pairs the best supported share `keep`.
    """
    from engine.decoding.resumable import back_translate_all
    from engine.training.selection import best_supported, support

    file = workspace / "pairs.jsonl"
    stamp = digest(stamps.get("samples"), pair.forward.fingerprint(), pair.backward.fingerprint(), "support")
    if not stamps.holds("pairs", stamp, file):
        progress.begin("Writing source sentences", 4, STEPS)
        both = [*train, *valid]
        missing = [segment.text for segment in both if segment.source is None]
        made = iter(back_translate_all(pair.backward, missing, workspace / "pairs.partial.jsonl", progress))
        made_rows: list[dict[str, Any]] = [
            {
                "source": next(made) if segment.source is None else segment.source,
                "target": segment.text,
                "part": "train" if i < len(train) else "valid",
                "synthetic": segment.source is None,
            }
            for i, segment in enumerate(both)
        ]
        rows = [row for row in made_rows if row["source"]]
        progress.begin("Weighing the sentence pairs", 4, STEPS)
        weighed = [row for row in rows if row["synthetic"]]
        values = support(pair.forward, [(row["source"], row["target"]) for row in weighed], progress)
        for row, value in zip(weighed, values, strict=True):
            row["support"] = round(value, 4)
        stamps.begin("pairs")
        write_jsonl(file, rows, "the sentence pairs")
        stamps.set("pairs", stamp)
    with file.open(encoding="utf-8") as lines:
        stored: list[dict[str, Any]] = [json.loads(line) for line in lines]
    training = [row for row in stored if row["part"] == "train"]
    kept = best_supported([row.get("support") for row in training], keep)
    return (
        [(row["source"], row["target"]) for row, good in zip(training, kept, strict=True) if good],
        [(row["source"], row["target"]) for row in stored if row["part"] == "valid"],
    )


def prepare(
    request: CustomizeRequest, workspace: Path, progress: Progress | None = None, settings: Settings | None = None
) -> dict[str, Any]:
    """The first two steps, as done after an upload: samples read, phrases found. Returns their counts."""
    from engine.settings import load_settings

    progress, settings = progress or Progress(), settings or load_settings()
    request = checked(request)
    with held(workspace):
        stamps = Stamps(workspace)
        corpus = read_samples(request, workspace, stamps, progress)
        train, _ = split_samples(corpus)
        base = load_pair(request, settings).forward
        phrases = find_phrases(request, train, base, workspace, stamps, progress, settings)
    return {"sentences": len(corpus), "phrases": len(phrases), "parser": phrases.parser}


def customize(
    request: CustomizeRequest,
    workspace: Path,
    progress: Progress | None = None,
    settings: Settings | None = None,
    *,
    until: str = "bundle",
) -> dict[str, Any]:
    """The whole main job; returns a summary of counts, figures and times, also kept in summary.json.

    `until` ("memory", "training", "bundle") ends it after that step with what is known then.
    Raises a TailorError with one sentence on bad input, Cancelled when the user stops it; finished steps stay.
    """
    from engine.settings import load_settings

    progress, settings = progress or Progress(), settings or load_settings()
    request = checked(request)
    if not request.output and until == "bundle":
        raise InputError("output is needed: the bundle to write, as PLUGIN.zip.")
    begin = time.monotonic()
    with held(workspace):
        return run_steps(request, workspace, progress, settings, begin, until)


def run_steps(
    request: CustomizeRequest, workspace: Path, progress: Progress, settings: Settings, begin: float, until: str
) -> dict[str, Any]:
    import torch

    from engine.base.precision import check_trainable
    from engine.methods import get_method
    from engine.plugins import Plugin, export_bundle
    from engine.training.data import Pairs
    from engine.training.loop import train as train_module
    from engine.tuning import tune_decoding

    method, config, training = get_method(request.method), method_config(request), training_config(request)
    stamps = Stamps(workspace)
    times: dict[str, float] = {}

    @contextlib.contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        times[step] = round(time.monotonic() - start, 1)

    with timed("samples"):
        corpus = read_samples(request, workspace, stamps, progress)
        train, valid = split_samples(corpus)
    pair = load_pair(request, settings)
    check_trainable(pair.forward)
    with timed("phrases"):
        phrases = find_phrases(request, train, pair.forward, workspace, stamps, progress, settings)
    with timed("memory"):
        progress.begin("Preparing the method", 2, STEPS)
        stamp = digest(stamps.get("phrases"), method.name, config.to_mapping(), pair.backward.fingerprint())
        if not stamps.holds("method", stamp):
            stamps.begin("method")
            for name in ("phrase_pairs.jsonl", "memory.safetensors"):
                (workspace / name).unlink(missing_ok=True)
            stamps.set("method", stamp)
        artefacts = method.prepare(phrases, pair, config, workspace, progress)
    if until == "memory":
        return {"memory": artefacts.memory.sizes if artefacts.memory else [], "seconds": times}
    with timed("pairs"):
        training_pairs, validation_pairs = make_pairs(
            train, valid, pair, training.keep_pairs, workspace, stamps, progress
        )
    with timed("training"):
        progress.begin("Training", 5, STEPS)
        folder = workspace / "training"
        stamp = digest(stamps.get("method"), stamps.get("pairs"), training.to_mapping(), settings.precision)
        if not stamps.holds("training", stamp):
            stamps.begin("training")
            shutil.rmtree(folder, ignore_errors=True)
            stamps.set("training", stamp)
        torch.manual_seed(training.seed)  # the module's first weights
        module = method.build(pair.forward, artefacts, config)
        result = train_module(
            pair.forward,
            method,
            module,
            Pairs.encode(pair.forward, training_pairs),
            Pairs.encode(pair.forward, validation_pairs),
            training,
            folder,
            precision=settings.precision,
            progress=progress,
        )
        method.complete(module)
        method.finish(module)
    if until == "training":
        return {**dataclasses.asdict(result), "times": times}
    with timed("evaluation"):
        plugin = Plugin(method, module, {})
        tuning, held_out = validation_pairs[::2][:MOST], validation_pairs[1::2][:MOST] or validation_pairs
        progress.begin("Choosing decoding settings", 6, STEPS)
        decoding = tune_decoding(pair.forward, plugin, tuning, progress)
        progress.begin("Comparing with the base", 6, STEPS)
        metrics = compare_with_base(pair.forward, plugin, held_out, Decoding.from_mapping(decoding), progress)
    metrics |= {"validation_loss_before": round(result.first_loss, 4), "validation_loss": round(result.best_loss, 4)}
    output = Path(request.output)
    export_bundle(
        output,
        name=request.name or output.stem,
        base=pair.forward,
        method=method,
        config=config,
        module=module,
        files=artefacts.files,
        decoding=decoding,
        provenance={
            "sentences": len(corpus),
            "phrases": sum(artefacts.memory.sizes) if artefacts.memory else 0,
            "parser": phrases.parser.split(":")[0].split(".")[0][:80],  # its advice names local folders
            "budget": request.budget,
            "updates": result.updates,
            "best_update": result.best_update,
            "parameters": result.parameters,
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
        "phrases": len(phrases),
        "parser": phrases.parser,
        "memory": artefacts.memory.sizes if artefacts.memory else [],
        "training_pairs": len(training_pairs),
        "validation_pairs": len(validation_pairs),
        "updates": result.updates,
        "best_update": result.best_update,
        "stopped_by": result.stopped_by,
        "parameters": result.parameters,
        "device": device_line(pair.forward),
        "decoding": decoding,
        "metrics": metrics,
        "warnings": corpus.report.warnings,
        "seconds": {**times, "total": round(time.monotonic() - begin, 1)},
    }
    write_json(workspace / "summary.json", summary, "the summary")
    return summary


def device_line(base: BaseModel) -> str:
    """The device and its memory, as "CPU, 2 cores, 14.2 of 23.4 GiB free"."""
    from engine.devices import describe_device

    about = describe_device(base.device)
    return f"{about['name']}, {about['free'] / 2**30:.1f} of {about['total'] / 2**30:.1f} GiB free"


def compare_with_base(
    base: BaseModel, plugin: Plugin, pairs: list[tuple[str, str]], decoding: Decoding, progress: Progress
) -> dict[str, Any]:
    """BLEU and chrF of base and customized base on held-out samples under the same decoding, with the paired-bootstrap p.

    The sources of monolingual samples are synthetic, so these figures flatter; test on real pairs where you have some.
    """
    from engine.evaluation import evaluate

    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    vanilla = base.translate(sources, decoding=decoding, progress=progress)
    customized = base.translate(sources, plugin, decoding=decoding, progress=progress)
    report = evaluate(
        {"vanilla": vanilla, "customized": customized},
        references,
        language=base.target,
        baseline="vanilla",
        samples=500,
    )
    return {
        "held_out_sentences": len(pairs),
        "bleu_vanilla": round(report["vanilla"].bleu.score, 2),
        "bleu": round(report["customized"].bleu.score, 2),
        "bleu_p": round(report["customized"].bleu.p or 0.0, 4),
        "chrf_vanilla": round(report["vanilla"].chrf.score, 2),
        "chrf": round(report["customized"].chrf.score, 2),
        "bleu_signature": report.signatures["BLEU"],
    }


@contextlib.contextmanager
def held(workspace: Path) -> Iterator[None]:
    """Keep a second process out of the workspace. Raises InputError when one is at work there."""
    from engine.errors import storage_errors

    with storage_errors("the workspace", workspace):
        workspace.mkdir(parents=True, exist_ok=True)
        file = (workspace / ".lock").open("w")
    try:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such lock on Windows; jobs of one project are kept apart by the store
            pass
        except OSError:
            raise InputError(
                f"Another process is at work in {workspace}. Wait for it, or choose another output."
            ) from None
        yield
    finally:
        file.close()
