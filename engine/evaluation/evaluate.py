"""Scores with confidence intervals and significance, by sacrebleu's paired bootstrap (Koehn, 2004)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.corpora.encoding import detect_encoding
from engine.errors import InputError, OptionError
from engine.evaluation.metrics import metrics
from engine.evaluation.report import Figure, Report, SystemScores
from engine.progress import Progress

__all__ = ["evaluate", "evaluate_files", "read_lines"]

SEED = 12345  # sacrebleu's own
_environment = threading.Lock()


def evaluate(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    language: str,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Report:
    """Score each system's lines against the references: BLEU and chrF2 with 95 % confidence intervals.

    `references` is one list of lines, or several of them. With a `baseline` (a name among the systems) every other
    system gets p-values against it by paired bootstrap resampling. Figures equal those of
    `SACREBLEU_SEED=<seed> sacrebleu --paired-bs --paired-bs-n <samples>`. Empty hypotheses are scored and counted.
    Working memory is about `samples` x lines x 160 bytes. Raises InputError when numbers of lines differ, OptionError
    on a baseline that is not among the systems, or `samples` or `seed` out of range.
    """
    progress = progress or Progress()
    if not systems:
        raise InputError("There is nothing to evaluate; give the lines of at least one system.")
    if baseline is not None and baseline not in systems:
        raise OptionError(f"The baseline {baseline!r} is not among the systems ({', '.join(systems)}).")
    if samples < 100:
        raise OptionError(f"samples: {samples} is too few for a confidence interval; give at least 100.")
    if seed < 1:
        # sacrebleu takes 0 for "no seed", which would give other figures each time.
        raise OptionError(f"seed: {seed} is below the smallest allowed value, 1.")
    streams = _streams(references)
    _same_lines({**{f"system {name}": lines for name, lines in systems.items()}, **streams})

    measures = metrics(language)
    found: list[SystemScores] = []
    signatures: dict[str, str] = {}
    order = sorted(systems, key=lambda name: name != baseline)  # the baseline first, the others as given
    for done, name in enumerate(order):
        progress.advance(done, len(order), name)
        pair = [name] if baseline in (None, name) else [baseline, name]
        scores = _bootstrap([(str(item), systems[item]) for item in pair], measures, streams, samples, seed)
        signatures = {metric: signature for metric, (signature, _) in scores.items()}
        figures = {
            metric: _figure(results[-1], results[0] if len(pair) == 2 else None)
            for metric, (_, results) in scores.items()
        }
        empty = sum(not line.strip() for line in systems[name])
        found.append(SystemScores(name, figures["BLEU"], figures["chrF2"], empty))
    progress.advance(len(order), len(order))
    lines = len(next(iter(systems.values())))
    return Report(language, lines, samples, seed, baseline, tuple(found), signatures)


def evaluate_files(
    systems: Mapping[str, str | Path],
    reference: str | Path,
    *,
    language: str,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Report:
    """evaluate() over files, one sentence a line. Errors name the files: which has how many lines, which is no text."""
    lines = {name: read_lines(path) for name, path in systems.items()}
    wanted = read_lines(reference)
    _same_lines({**{str(systems[name]): items for name, items in lines.items()}, str(reference): wanted})
    return evaluate(lines, wanted, language=language, baseline=baseline, samples=samples, seed=seed, progress=progress)


def read_lines(path: str | Path) -> list[str]:
    """All lines of a text file, blank ones too, without their ends. Raises CorpusError when it is no readable text."""
    path = Path(path)
    with path.open(encoding=detect_encoding(path)) as file:
        return [line.rstrip("\n") for line in file]


def _streams(references: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    first = references[0] if references else ""
    if isinstance(first, str):
        return {"the reference": [str(line) for line in references]}
    return {f"reference {number}": list(lines) for number, lines in enumerate(references, start=1)}


def _same_lines(named: Mapping[str, Sequence[str]]) -> None:
    counts = {name: len(lines) for name, lines in named.items()}
    if len(set(counts.values())) > 1:
        listed = "; ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise InputError(f"The numbers of lines differ, so lines cannot be compared one by one: {listed}.")
    if not any(counts.values()):
        raise InputError("There are no lines to evaluate; give at least one sentence and its reference.")


def _bootstrap(
    named: list[tuple[str, Sequence[str]]],
    measures: Mapping[str, Any],
    streams: Mapping[str, Sequence[str]],
    samples: int,
    seed: int,
) -> dict[str, tuple[str, list[Any]]]:
    """By metric: sacrebleu's signature, and its results in the order of `named`, tested against the first."""
    from sacrebleu.significance import PairedTest

    with _seeded(seed):
        test = PairedTest(named, measures, list(streams.values()), test_type="bs", n_samples=samples)
        signatures, scores = test()
    return {metric: (str(signature), scores[metric]) for metric, signature in signatures.items()}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    # The environment is the only way in: sacrebleu's classes take no seed.
    with _environment:
        before = os.environ.get("SACREBLEU_SEED")
        os.environ["SACREBLEU_SEED"] = str(seed)
        try:
            yield
        finally:
            if before is None:
                del os.environ["SACREBLEU_SEED"]
            else:
                os.environ["SACREBLEU_SEED"] = before


def _figure(result: Any, base: Any | None) -> Figure:
    score, mean, ci = float(result.score), float(result.mean), float(result.ci)
    p = None if base is None else float(result.p_value)
    if base is not None and score == base.score:
        # Of identical systems no resample differs, and sacrebleu's count of larger differences comes out as nearly 0.
        p = 1.0
    return Figure(score, mean, max(0.0, mean - ci), min(100.0, mean + ci), p)
