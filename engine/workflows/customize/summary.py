"""The output of a run: the bundle and its summary."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.atomic_files import write_json
from engine.core.devices import describe_device
from engine.messages import mark
from engine.workflows.customize.request import unlike_the_paper
from engine.workflows.customize.run import Run

if TYPE_CHECKING:
    from engine.base import BaseModel


def write_bundle(run: Run) -> None:
    """The plugin as one file."""
    from engine.plugins import BundleContent, export_bundle

    output, unlike = Path(run.request.output), unlike_the_paper(run.request)
    export_bundle(
        output,
        BundleContent(
            name=run.request.name or output.stem,
            base=run.pair.forward,
            method=run.method,
            config=run.config,
            module=run.module,
            files={**run.artefacts.files, **run.datastore.files, **filter_files(run)},
            knn=run.datastore.settings,
            decoding=run.decoding,
            provenance={
                "sentences": len(run.corpus),
                "phrases": sum(run.memory_sizes) - run.artefacts.remembered,
                **({"remembered_tokens": run.artefacts.remembered} if run.artefacts.remembered else {}),
                "parser": parser_of(run).split(":")[0].split(".")[0][:80],  # its advice names local folders
                "budget": run.request.budget,
                **({"unlike_the_paper": unlike} if unlike else {}),
                **({"chosen_from": comparison(run)} if run.tried else {}),
                **({"domain_filter": mark("sentences unlike the samples are left to the base")} if filter_files(run) else {}),
                **training_figures(run),
                "seed": run.training.seed,
            },
            metrics=run.metrics,
            with_phrases=run.request.with_phrases,
        ),
    )


def parser_of(run: Run) -> str:
    """The parser that found the phrases; empty without phrases."""
    return run.samples.phrases.parser if run.samples.phrases else ""


def filter_files(run: Run) -> dict[str, Path]:
    """The domain filter's file, if the plugin has one."""
    from engine.plugins.bundle import DOMAIN_FILTER

    return {DOMAIN_FILTER: run.workspace / DOMAIN_FILTER} if run.plugin.domain_filter is not None else {}


def comparison(run: Run) -> str:
    """The BLEU of all trials of `auto`, as "base 12.3, knn 22.1, houlsby_adapter + knn 23.5 BLEU on held-out samples"."""
    return ", ".join(f"{trial.name} {trial.bleu:.1f}" for trial in run.tried) + " BLEU on held-out samples"


def training_figures(run: Run) -> dict[str, Any]:
    """How far training got; empty if the method does not train."""
    if run.result is None:
        return {}
    result = run.result
    return {
        "updates": result.updates,
        "most_updates": result.limit,
        "best_update": result.best_update,
        "parameters": result.parameters,
        "training": result.ended,
    }


def summarize(run: Run, stop_after: str) -> dict[str, Any]:
    """Counts, figures and seconds of the run; those of a whole run are also stored in summary.json."""
    if stop_after == "memory":
        return {"memory": run.memory_sizes, "seconds": run.times}
    if stop_after == "training":
        return {**(dataclasses.asdict(run.result) if run.result else {}), "times": run.times}
    output, samples = Path(run.request.output), run.samples
    seconds = {step: value for step, value in run.times.items() if step != "bundle"}
    summary = {
        "plugin": str(output),
        "bytes": output.stat().st_size,
        "method": run.method.name,
        "base": run.pair.forward.name,
        "source": run.request.source,
        "target": run.request.target,
        "sentences": len(run.corpus),
        "phrases": len(samples.phrases) if samples.phrases else 0,
        "parser": parser_of(run),
        "excluded_phrases": len(run.exclusions.phrases),
        "excluded_sentences": len(run.train) - len(samples.train),
        "memory": run.memory_sizes,
        "training_pairs": len(samples.pairs("train")),
        "memory_pairs": len(samples.pairs("memory")),
        "validation_pairs": len(samples.pairs("valid")),
        **training_figures(run),
        "budget": run.request.budget,
        "unlike_the_paper": unlike_the_paper(run.request),
        "replay": run.training.replay,
        "stopped_by": run.result.stopped_by if run.result else "",
        "device": device_line(run.pair.forward),
        "decoding": run.decoding,
        "metrics": run.metrics,
        **({"tried": [dataclasses.asdict(trial) for trial in run.tried]} if run.tried else {}),
        **({"knn": run.datastore.figures} if run.datastore.figures else {}),
        "warnings": run.corpus.report.all_warnings,
        "seconds": {**seconds, "total": round(time.monotonic() - run.begin, 1)},
    }
    write_json(run.folder / "summary.json", summary, "the summary")
    return summary


def device_line(base: BaseModel) -> str:
    """The device and its memory, as "CPU, 2 cores, 14.2 of 23.4 GiB free"."""
    device = describe_device(base.device)
    return f"{device.name}, {device.free / 2**30:.1f} of {device.total / 2**30:.1f} GiB free"
