"""Scores with confidence intervals and significance tests.

BLEU, chrF and TER use sacrebleu's paired bootstrap (Koehn, 2004) and approximate randomisation; perplexity and classifier score of
the style, the hit rate of terms, and COMET use the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress
from engine.corpora.formats.encoding import detect_encoding
from engine.corpora.formats.text_lines import lines_of_file
from engine.corpora.terminology import Term
from engine.errors import InputError, OptionError
from engine.evaluation.bootstrap import interval, p_value, randomised, resampled
from engine.evaluation.metrics import metrics
from engine.evaluation.report import Figure, Report, SystemScores
from engine.evaluation.terminology import copied_share, term_counts

if TYPE_CHECKING:
    import numpy as np

    from engine.evaluation.comet import Comet
    from engine.evaluation.style_scorers import StyleScorers

SEED = 12345  # sacrebleu's default
TRIALS = 10_000  # of approximate randomisation, sacrebleu's default


@dataclass(frozen=True)
class ExtraMetrics:
    """Additional metrics: TER, approximate randomisation with `trials` trials, the hit rate of `terms`, with `sources` (one per
    line) the share of copied words and COMET, and with `style` perplexity and the classifier's score.
    """

    ter: bool = False
    trials: int = 0
    terms: Sequence[Term] = ()
    sources: Sequence[str] | None = None
    source_language: str = ""
    comet: Comet | None = None
    style: StyleScorers | None = None

    def comet_scores(self, references: object | None) -> bool:
        """Whether COMET can score with these references, or without any (None)."""
        return self.comet is not None and (references is not None or not self.comet.needs_references)


@dataclass(frozen=True)
class Measure:
    """One metric: additive statistics `stats` (n, k) of a system's lines, and the score of their sum, at most `high`."""

    stats: Callable[[Sequence[str]], Any]
    score: Callable[[Any], float]
    signature: Callable[[], str]
    high: float = 100.0
    ties: bool = True  # count ties in randomisation; off for sacrebleu's metrics, as in sacrebleu


def evaluate(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str] | Sequence[Sequence[str]] | None,
    *,
    language: str,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = SEED,
    further: ExtraMetrics | None = None,
    progress: Progress | None = None,
) -> Report:
    """Score each system's lines: BLEU and chrF2 against the references and the metrics of `further`, with 95 % intervals.

    `references` is one list of lines, several of them, or None to use only the metrics of `further`. With a `baseline` (a system's
    name) every other system gets p-values against it by paired bootstrap resampling. BLEU and chrF2 equal those of
    `SACREBLEU_SEED=<seed> sacrebleu --paired-bs --paired-bs-n <samples>`. Empty hypotheses are scored and counted. Raises
    InputError when numbers of lines differ or there is nothing to score with, OptionError on an unknown baseline, or on `samples`
    or `seed` out of range.
    """
    progress, further = progress or Progress(), further or ExtraMetrics()
    check(systems, references, baseline, samples, seed, further)
    streams = {} if references is None else _streams(references)
    sources = {} if further.sources is None else {"the source": further.sources}
    _same_lines({**{f"system {name}": lines for name, lines in systems.items()}, **streams, **sources})

    measures = reference_measures(language, streams, samples, seed, further.ter) if streams else {}
    first = next(iter(streams.values()), None)
    measures |= style_measures(further.style) | term_measures(further, first)
    measures |= comet_measures(further, systems, first, progress)
    order = sorted(systems, key=lambda name: name != baseline)  # the baseline first, the others as given
    result: dict[str, dict[str, Figure]] = {name: {} for name in order}
    done, total = 0, len(order) * len(measures)
    for metric, measure in measures.items():
        base: tuple[float, np.ndarray, np.ndarray] | None = None
        for name in order:
            progress.advance(done, total, name)
            done += 1
            stats = measure.stats(systems[name])
            score, scores = measure.score(stats.sum(0)), resampled(stats, measure.score, samples, seed)
            swapped = None
            if base and further.trials:
                swapped = randomised(stats, base[2], measure.score, further.trials, seed, ties=measure.ties)
            result[name][metric] = _figure(score, scores, base, measure.high, swapped)
            if name == baseline:
                base = score, scores, stats
    progress.advance(total, total)
    return Report(
        language=language,
        lines=len(next(iter(systems.values()))),
        samples=samples,
        seed=seed,
        baseline=baseline,
        systems=tuple(
            SystemScores(
                name,
                result[name].get("BLEU"),
                result[name].get("chrF2"),
                sum(not line.strip() for line in systems[name]),
                result[name].get("perplexity"),
                result[name].get("classifier"),
                result[name].get("TER"),
                result[name].get("terms"),
                length_ratio(systems[name], streams, language),
                None
                if further.sources is None
                else copied_share(systems[name], further.sources, language, further.source_language),
                result[name].get("COMET"),
            )
            for name in order
        ),
        signatures={metric: measure.signature() for metric, measure in measures.items()},
    )


def check(
    systems: Mapping[str, Sequence[str]], references: Any, baseline: str | None, samples: int, seed: int, further: ExtraMetrics
) -> None:
    if not systems:
        raise InputError("There is nothing to evaluate; provide the output of at least one system.")
    by_sources = further.sources is not None and (further.terms or further.comet_scores(None))
    if references is None and further.style is None and not by_sources:
        raise InputError("There is nothing to score against; provide references or samples of the style.")
    if baseline is not None and baseline not in systems:
        raise OptionError(
            "The baseline {baseline!r} is not among the systems ({systems}).", baseline=baseline, systems=", ".join(systems)
        )
    if samples < 100:
        raise OptionError("samples: {samples} is too few for a confidence interval; use at least 100.", samples=samples)
    if seed < 1:
        # sacrebleu treats 0 as "no seed", which would give different figures each time.
        raise OptionError("seed: {seed} is below the smallest allowed value, 1.", seed=seed)


def evaluate_files(
    systems: Mapping[str, str | Path],
    reference: str | Path | None,
    *,
    language: str,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = SEED,
    further: ExtraMetrics | None = None,
    progress: Progress | None = None,
) -> Report:
    """evaluate() over files with one sentence per line. Error messages name the files."""
    lines = {name: read_lines(path) for name, path in systems.items()}
    references = None if reference is None else read_lines(reference)
    lines_by_path = {str(systems[name]): items for name, items in lines.items()}
    _same_lines(lines_by_path if references is None else {**lines_by_path, str(reference): references})
    return evaluate(
        lines, references, language=language, baseline=baseline, samples=samples, seed=seed, further=further, progress=progress
    )


def read_lines(path: str | Path) -> list[str]:
    """All lines of a text file, including blank ones, without line ends. Raises CorpusError if it is not readable text."""
    path = Path(path)
    return lines_of_file(path, detect_encoding(path), str(path))


def _streams(references: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    first = references[0] if references else ""
    if isinstance(first, str):
        return {"the reference": [str(line) for line in references]}
    return {f"reference {number}": list(lines) for number, lines in enumerate(references, start=1)}


def _same_lines(named: Mapping[str, Sequence[str]]) -> None:
    counts = {name: len(lines) for name, lines in named.items()}
    if len(set(counts.values())) > 1:
        listed = "; ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise InputError("The numbers of lines differ, so lines cannot be compared one by one: {listed}.", listed=listed)
    if not any(counts.values()):
        raise InputError("There are no lines to evaluate; provide at least one sentence and its reference.")


def reference_measures(
    language: str, streams: Mapping[str, Sequence[str]], samples: int, seed: int, ter: bool
) -> dict[str, Measure]:
    """BLEU, chrF2 and TER from sacrebleu's statistics per line, so that resampling does not recount."""
    references = list(streams.values())

    def measure(name: str, metric: Any) -> Measure:
        def stats(lines: Sequence[str]) -> np.ndarray:
            import numpy as np

            return np.array(metric._extract_corpus_statistics(lines, references), dtype="float32")

        def score(total: Any) -> float:
            return float(metric._compute_score_from_stats(total).score)

        def signature() -> str:
            result = metric.get_signature()
            result.update("seed", str(seed))
            result.update("bs", samples)
            return str(result)

        return Measure(stats, score, signature, float("inf") if name == "TER" else 100.0, ties=False)

    return {name: measure(name, metric) for name, metric in metrics(language, ter=ter).items()}


def term_measures(further: ExtraMetrics, references: Sequence[str] | None) -> dict[str, Measure]:
    """The hit rate of the terms, in percent of the expected ones."""
    if not further.terms:
        return {}
    import numpy as np

    def counts(lines: Sequence[str]) -> np.ndarray:
        return np.array(term_counts(further.terms, lines, further.sources, references), dtype=float)  # (n, 2)

    def score(total: Any) -> float:
        return float(100 * total[0] / max(1.0, total[1]))

    return {"terms": Measure(counts, score, lambda: f"terms:{len(further.terms)}|case:lc|whole words where spaced")}


def comet_measures(
    further: ExtraMetrics, systems: Mapping[str, Sequence[str]], references: Sequence[str] | None, progress: Progress
) -> dict[str, Measure]:
    """The mean of COMET's line scores, times 100."""
    comet = further.comet
    if comet is None or further.sources is None or not further.comet_scores(references):
        return {}
    import numpy as np

    result = comet.scores(systems, further.sources, references, progress)
    by_lines = {tuple(lines): result[name] for name, lines in systems.items()}

    def stats(lines: Sequence[str]) -> np.ndarray:
        return np.array([(score, 1.0) for score in by_lines[tuple(lines)]], dtype=float)  # (n, 2)

    def score(total: Any) -> float:
        return float(total[0] / total[1])

    return {"COMET": Measure(stats, score, lambda: comet.signature)}


def length_ratio(lines: Sequence[str], streams: Mapping[str, Sequence[str]], language: str) -> float | None:
    """Tokens of the translations over tokens of the (first) reference, as counted by BLEU; None without a reference."""
    if not streams:
        return None
    split = metrics(language)["BLEU"].tokenizer
    reference_tokens = sum(len(split(line).split()) for line in next(iter(streams.values())))
    return sum(len(split(line).split()) for line in lines) / max(1, reference_tokens)


def style_measures(style: StyleScorers | None) -> dict[str, Measure]:
    """Perplexity (lower is better), and the share of lines that the classifier finds in the style, in percent."""
    if style is None:
        return {}
    import numpy as np

    def surprises(lines: Sequence[str]) -> np.ndarray:
        return np.array(style.language_model.score(lines), dtype=float)  # (n, 2): nats, units

    def perplexity(total: np.ndarray) -> float:
        return float(np.exp(total[0] / max(1.0, total[1])))

    measures = {"perplexity": Measure(surprises, perplexity, lambda: style.language_model.signature, float("inf"))}
    classifier = style.classifier
    if classifier is not None:

        def taken(lines: Sequence[str]) -> np.ndarray:
            return np.array([(value > 0.5, 1.0) for value in classifier.score(lines)], dtype=float)  # (n, 2)

        measures["classifier"] = Measure(taken, lambda total: float(100 * total[0] / total[1]), lambda: classifier.signature)
    return measures


def _figure(
    score: float, scores: np.ndarray, base: tuple[float, np.ndarray, np.ndarray] | None, high: float, swapped: float | None
) -> Figure:
    mean, low, top = interval(scores)
    p = None if base is None else p_value(scores, base[1], score - base[0])
    if base is not None and score == base[0]:
        # Resamples of identical systems never differ, but sacrebleu's count of larger differences would yield a p of nearly 0.
        p = 1.0
        swapped = None if swapped is None else 1.0
    return Figure(score, mean, max(0.0, low), min(high, top), p, swapped)
