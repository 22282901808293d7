"""A first look: a few sentences translated by the base alone and by the base with kNN retrieval from the samples (kNN-MT).

Nothing is trained, so it is ready within a minute of an upload, before the user has chosen anything. The source sentences that it
writes are stored for later runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel, LanguagePair
from engine.base.decoding_options import Decoding
from engine.core.atomic_files import write_json
from engine.core.progress import Progress, Quiet
from engine.core.settings import Settings, load_settings
from engine.core.step_cache import StepCache, content_hash
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.customize.steps import load_pair, read_samples, split_samples, validated, workspace_lock, write_sources
from engine.workflows.throughput import IMPORTING, NumberedProgress, ThroughputLog, TimedProgress, peak_memory, tokens_a_character

if TYPE_CHECKING:
    from engine.corpora import Segment
    from engine.corpora.types import SentencePair
    from engine.methods.knn.decoder import Knn

FILE = "preview.json"
STEPS = (
    "Reading samples", "Loading the base", "Writing source sentences", "Recording the datastore",
    "Translating general text", "Choosing kNN settings", "Translating a few sentences", "Fitting domain proportions",
    "Finding phrases", "Comparing with general text",
)  # fmt: skip
WHOLE = 1_000  # sentences; larger samples are reduced to this many, so that the look is quick
HELD_OUT = 40  # sentences on which the settings are chosen
SCORED = 24  # further sentences with the user's own sources, whose translations are scored
SHOWN = 6  # sentences of each kind
SYSTEMS = ("vanilla", "customized")
# Minimum chrF of a source with its round trip. With the shipped base, plain sentences reach 34–80, one that it cannot translate 22.
UNDERSTOOD = 30.0
LOOK = Decoding(beam=2, guard=False, no_repeat_ngram=3, max_length_ratio=1.6, longest=64)


def preview(
    request: CustomizeRequest, workspace: Path, progress: Progress | None = None, settings: Settings | None = None, *,
    as_read: bool = False, pair: LanguagePair | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Make the look and store it in preview.json of the workspace, once for the same samples and base.

    Sentences flagged as being in another language are left out, as are those identical to their sources.

    `as_read`: use the samples as last read into the workspace, whatever became of their files.
    `pair`: the request's base, if it is already loaded.

    Rows: `kind` ("plain" sentences of the source language, or "held out" from the samples), `source`, `vanilla`, `customized`, and
    for held-out ones `reference`, the user's own sentence; `agreement`, by system, the chrF of the source with the translation's
    back-translation, and `flags`, by system, why a translation is odd. `agreement_base` and `agreement` are means over the
    sentences that the base can translate. Also the chosen settings, the held-out loss (nats per token) without and with them,
    `sourced`: the share of the samples with the user's own sources, and the seconds of each step. If all held-out sources are the
    user's own, there are no plain sentences, and `bleu_base` and `bleu` are measured on sentences not used to choose settings.
    Raises as `customize` does.
    """
    from engine.corpora.corpus import noticed_rows
    from engine.corpora.warnings import ANOTHER_LANGUAGE

    settings = settings or load_settings()
    if not isinstance(progress, NumberedProgress):
        progress = NumberedProgress(progress or Progress(), STEPS)
    clock = progress
    request = validated(request)
    with workspace_lock(workspace):
        cache = StepCache(workspace, shared=True)
        corpus = read_samples(request, workspace, cache, progress, as_read=as_read)
        if pair is None:
            progress.begin("Loading the base")
            pair = load_pair(request, settings)
        key = content_hash(cache.get("samples"), pair.forward.fingerprint(), pair.backward.fingerprint(), 4)
        file = workspace / FILE
        if cache.is_fresh("preview", key, file):
            return json.loads(file.read_text(encoding="utf-8"))
        foreign = {corpus.segments[row].text for row in noticed_rows(workspace, ANOTHER_LANGUAGE)}
        train, valid = ([segment for segment in part if segment.text not in foreign] for part in split_samples(corpus))
        result = _look(request, train, valid, pair, workspace / "preview", cache, progress, settings)
        clock.stop()
        _note(ThroughputLog.of(settings, pair.forward), pair, train, valid, clock.seconds, cache)
        result["seconds"] = {step: round(seconds, 1) for step, seconds in clock.seconds.items()}
        cache.invalidate("preview")
        write_json(file, result, "the first look")
        cache.mark_done("preview", key)
        return result


def _look(
    request: CustomizeRequest, train: Sequence[Segment], valid: Sequence[Segment], pair: LanguagePair, folder: Path,
    cache: StepCache, progress: TimedProgress, settings: Settings,
) -> dict[str, Any]:  # fmt: skip
    from engine.evaluation.general_text import learnable_pairs
    from engine.methods.knn.build import make_knn
    from engine.methods.knn.options import KnnOptions

    base = pair.forward
    learn, held_out = (
        [sample for sample in pairs if sample.source and not copied(sample.source, sample.target)]
        for pairs in _pairs(train, valid, pair, cache, progress)
    )
    sourced = sum(not sample.synthetic for sample in (*learn, *held_out)) / max(1, len(learn) + len(held_out))
    all_sourced = bool(held_out) and not any(sample.synthetic for sample in held_out)
    half = len(held_out) // 2
    tuning, scored = (held_out[:half][:HELD_OUT], held_out[half:][:SCORED]) if all_sourced else (held_out[:HELD_OUT], [])
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier or interrupted look
    texts = [segment.text for segment in (*train, *valid)]
    knn, _, metrics = make_knn(
        base, learn, tuning, KnnOptions(retrieval="sentence"), folder, progress=progress,
        general=lambda: learnable_pairs(pair, settings, exclude=texts, progress=progress),
    )  # fmt: skip
    progress.begin("Translating a few sentences")
    plain = [] if all_sourced else _plain(settings, base.source)
    displayed = scored or tuning[: 2 * SHOWN]
    rows = [{"kind": "plain", "source": text} for text in plain]
    rows += [{"kind": "held out", "source": sample.source, "reference": sample.target} for sample in displayed]
    for key, translations in _translate_with_both(base, knn, [row["source"] for row in rows], progress).items():
        for row, text in zip(rows, translations, strict=True):
            row[key] = text
    _check(rows, pair.backward, progress)
    shutil.rmtree(folder, ignore_errors=True)
    metrics |= _scores(rows, base.target) if all_sourced else {}
    metrics |= _means([row for row in rows if understood(row)])
    return {
        "rows": rows,
        "sourced": round(sourced, 4),
        **{key: metrics[key] for key in ("bleu_base", "bleu", "agreement_base", "agreement") if key in metrics},
        "differ": sum(row["vanilla"] != row["customized"] for row in rows),
        "sentences": len(learn),
        "entries": metrics["entries"],
        "k": knn.options.k,
        "temperature": knn.options.temperature,
        "weight": knn.options.weight,
        "loss_base": metrics["loss_base"],
        "loss": metrics["loss"],
        "base": base.name,
        "source": request.source,
        "target": request.target,
    }


def _pairs(
    train: Sequence[Segment], valid: Sequence[Segment], pair: LanguagePair, cache: StepCache, progress: Progress
) -> tuple[list[SentencePair], list[SentencePair]]:
    """Pairs for the datastore, and held-out ones; sources of small samples are stored for later runs."""
    from engine.corpora.types import SentencePair
    from engine.decoding.greedy_search import back_translate

    if len(train) + len(valid) <= WHOLE:
        segments = [*train, *valid]
        sources = write_sources(segments, pair, cache, progress)
    else:
        every = len(train) / WHOLE
        train = [train[int(i * every)] for i in range(WHOLE)]
        valid = valid[: HELD_OUT + SCORED]
        segments = [*train, *valid]
        progress.begin("Writing source sentences")
        missing = [segment.text for segment in segments if segment.source is None]
        new_sources = iter(back_translate(pair.backward, missing, progress=progress))
        sources = [next(new_sources) if segment.source is None else segment.source for segment in segments]
    pairs = [
        SentencePair(source, segment.text, segment.domain, segment.source is None)
        for source, segment in zip(sources, segments, strict=True)
    ]
    return pairs[: len(train)], pairs[len(train) :]


def _check(rows: Sequence[dict[str, Any]], backward: BaseModel, progress: Progress) -> None:
    """Add the chrF of each source with the back-translations of its translations, and flags for repetitive translations."""
    from sacrebleu.metrics import CHRF

    from engine.decoding.greedy_search import back_translate
    from engine.decoding.guard import repeated

    chrf, texts = CHRF(), [row[key] for row in rows for key in SYSTEMS]
    returned = iter(back_translate(backward, texts, progress=Quiet(progress)))
    for row in rows:
        row["agreement"] = {key: round(float(chrf.sentence_score(next(returned), [row["source"]]).score), 1) for key in SYSTEMS}
        row["flags"] = {key: "repetition" for key in SYSTEMS if repeated(row["source"], row[key])}


def copied(source: str, text: str) -> bool:
    """Whether the text is the source itself instead of a translation."""
    return " ".join(source.split()).casefold() == " ".join(text.split()).casefold()


def understood(row: Mapping[str, Any]) -> bool:
    """Whether the base can translate the sentence of a row: without repeating or copying it, and with a recognisable round trip."""
    if any(copied(str(row.get("source", "")), str(row.get(key) or "")) for key in SYSTEMS):
        return False
    enough = float((row.get("agreement") or {}).get("vanilla", 100.0)) >= UNDERSTOOD
    return enough and "vanilla" not in (row.get("flags") or {})


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if not rows:
        return {}
    means = [sum(row["agreement"][key] for row in rows) / len(rows) for key in SYSTEMS]
    return {"agreement_base": round(means[0], 1), "agreement": round(means[1], 1)}


def _scores(rows: Sequence[dict[str, Any]], language: str) -> dict[str, float]:
    """BLEU of both translations of the held-out sentences."""
    from engine.evaluation.metrics import metrics

    score, references = metrics(language)["BLEU"], [[row["reference"] for row in rows]]
    return {
        name: round(float(score.corpus_score([row[key] for row in rows], references).score), 1)
        for name, key in (("bleu_base", "vanilla"), ("bleu", "customized"))
    }


def _plain(settings: Settings, language: str) -> list[str]:
    """A few plain sentences of the source language, if any are bundled."""
    try:
        text = (settings.assets_dir / "samples" / f"demo.{language}.txt").read_text(encoding="utf-8")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][: 2 * SHOWN]


def _translate_with_both(base: BaseModel, knn: Knn, sources: Sequence[str], progress: Progress) -> dict[str, list[str]]:
    """`vanilla` and `customized` translations with the same decoding settings."""
    from engine.decoding.translate import translate
    from engine.methods import get_method
    from engine.methods.knn.module import KnnModule
    from engine.plugins import Plugin

    quiet = Quiet(progress)
    progress.advance(0, 2)
    vanilla = translate(base, sources, decoding=LOOK, progress=quiet)
    progress.advance(1, 2)
    plugin = Plugin(get_method("knn"), KnnModule(knn), {})
    customized = translate(base, sources, plugin, decoding=LOOK, progress=quiet)
    return {"vanilla": vanilla, "customized": customized}


def _note(
    throughput: ThroughputLog, pair: LanguagePair, train: Sequence[Segment], valid: Sequence[Segment], seconds: dict[str, float],
    cache: StepCache,
) -> None:  # fmt: skip
    """Record this machine's speed with this base, as measured during the look."""
    train_chars = sum(len(segment.text) for segment in train[:WHOLE])
    missing = sum(len(segment.text) for segment in (*train, *valid) if segment.source is None)
    per_character = tokens_a_character(pair.forward, [segment.text for segment in train])
    measurements = {
        "start": seconds.get("Loading the base", 0.0) + IMPORTING,
        f"tokens a character {pair.forward.target}": per_character,
        "peak preview 0": float(peak_memory()),
    }
    recorded = seconds.get("Recording the datastore", 0.0)
    if recorded > 0.05:
        measurements["datastore"] = train_chars / recorded
    written = seconds.get("Writing source sentences", 0.0)
    if "sources" in cache.made and written > 0.05:
        measurements["sources"] = missing / written
    throughput.note_all(measurements)
