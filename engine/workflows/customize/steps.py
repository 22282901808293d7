"""The steps of the main job that are the same for every method: samples, phrases, sentence pairs.

Each leaves files in the workspace and a key of its inputs; while the key is unchanged, the step is skipped.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.atomic_files import read_jsonl, write_jsonl
from engine.core.cores import model_threads
from engine.core.languages import canonical, language_message
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.step_cache import StepCache, content_hash, digest_files
from engine.errors import CorpusError, InputError, storage_errors
from engine.workflows.customize.request import CustomizeRequest, corpus_config, phrase_config, validate

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair
    from engine.corpora import Corpus, Decisions, Segment
    from engine.corpora.types import SentencePair
    from engine.methods import Capabilities
    from engine.phrases import PhraseSet
    from engine.phrases.exclusions import Exclusions
    from engine.training.options import TrainingOptions

STEPS = (
    "Reading samples", "Finding phrases", "Comparing with general text", "Preparing the method", "Writing source sentences",
    "Filtering synthetic pairs", "Translating the sources there and back", "Choosing the monitored sentences",
    "Translating general text", "Training", "Choosing decoding settings", "Comparing with the base",
)  # fmt: skip
EXCLUDED = "excluded"  # the part of pairs.jsonl that is not trained on
WRITER = "sources by"  # key in steps.json: the reverse model and search of the stored sources
SOURCES = ("sources.jsonl", "pairs.jsonl")  # files that contain sources
SEARCH = "beam"  # name of the search for sources; another search needs another name
FEWEST = 20  # sentences; with fewer, nothing is left to validate on


def load_pair(request: CustomizeRequest, settings: Settings) -> LanguagePair:
    import torch

    from engine.base import LanguagePair

    if settings.threads:
        torch.set_num_threads(model_threads(settings.threads))
    return LanguagePair.load(
        request.base, request.source, request.target, backward=request.backward, download=request.download, settings=settings
    )


def validated(request: CustomizeRequest) -> CustomizeRequest:
    """The request with canonical language tags. Raises InputError or OptionError if it cannot work."""
    validate(request)
    return request.replace(source=canonical(request.source), target=canonical(request.target))


def read_samples(
    request: CustomizeRequest, workspace: Path, cache: StepCache, progress: Progress, *, as_read: bool = False
) -> Corpus:
    """Step 1: corpus.jsonl and import_report.json, with skipped and flagged sentences beside them. `as_read` uses the existing
    files, whatever they were made from. Raises CorpusError for too few sentences.
    """
    from engine.corpora import Corpus, Decisions, ImportReport, SampleFiles, import_to

    options, decisions = corpus_config(request), Decisions.load(workspace)
    key = cache.get("samples") if as_read else ""
    key = key or samples_key(request, decisions)
    if cache.is_fresh("samples", key, workspace / "corpus.jsonl"):
        return Corpus.load(workspace)

    def enough(report: ImportReport) -> None:
        if report.kept < FEWEST:
            raise CorpusError(
                "Only {kept} of {segments} sentences in the samples are usable {target} text; at least {fewest} "
                "are needed, a few hundred are better.",
                kept=report.kept, target=language_message(request.target), segments=report.segments, fewest=FEWEST,
            )  # fmt: skip
        cache.invalidate("samples")

    progress.begin("Reading samples")
    files = SampleFiles(list(map(Path, request.samples)), request.target, request.source, request.domains)
    import_to(workspace, files, options=options, decisions=decisions, progress=progress, check=enough)
    cache.mark_done("samples", key)
    return Corpus.load(workspace)


def samples_key(request: CustomizeRequest, decisions: Decisions) -> str:
    """The key of the samples step. Settings and decisions are included only if there are any, so that older keys remain valid."""
    options: list[Any] = [{"options": json.dumps(request.corpus_options, sort_keys=True)}] if request.corpus_options else []
    return content_hash(
        request.source, request.target, digest_files(request.samples), *request.domains, *options, *decisions.to_list()
    )


def held_out_count(sentences: int) -> int:
    """The number of sentences held out for validation: a twelfth, between 16 and 500, but at most a quarter if there are few."""
    return min(500, max(min(16, sentences // 4), sentences // 12))


def split_samples(corpus: Corpus) -> tuple[list[Segment], list[Segment]]:
    """Training and validation sentences, without similar ones in both. Raises CorpusError if the samples are too similar."""
    from engine.corpora import split

    parts = split(corpus, valid=held_out_count(len(corpus)))
    if not parts.valid or len(parts.train) < FEWEST // 2:
        raise CorpusError("The samples are too similar to hold some out for validation. Add different sentences.")
    return parts.train, parts.valid


def find_phrases(
    request: CustomizeRequest, train: list[Segment], valid: list[Segment], base: BaseModel, cache: StepCache, progress: Progress,
    settings: Settings,
) -> PhraseSet:  # fmt: skip
    """Step 2: phrases.jsonl, from the training part only, so that validation stays fair; trees and counts are stored beside it."""
    from engine.phrases import Drawing, PhraseSet, extract_phrases
    from engine.phrases.table import open_table
    from engine.phrases.tree_store import TREES_FILE, writing_trees

    options = phrase_config(request)
    key = content_hash(cache.get("samples"), options.to_mapping(), base.fingerprint(), *map(str, settings.parser_dirs))
    variant = cache.variant("phrases", key)
    file = variant.folder / "phrases.jsonl"
    if variant.is_fresh("phrases", key, file):
        return PhraseSet.load(file)
    progress.begin("Finding phrases")
    displayed = variant is cache  # the phrases shown by pages, which have trees and counts beside them
    with writing_trees(variant.folder / TREES_FILE) if displayed else contextlib.nullcontext() as trees:
        result = extract_phrases(
            [segment.text for segment in train],
            request.target,
            options,
            parser_dirs=settings.parser_dirs,
            pieces=base.subwords,
            drawing=Drawing(trees, [segment.text for segment in valid]) if trees else None,
            device=settings.device,
            progress=progress,
        )
    variant.invalidate("phrases")
    result.save(file)
    if displayed:
        progress.begin("Comparing with general text")
        open_table(variant.folder, request.target, settings.assets_dir, train, result, progress)
    variant.mark_done("phrases", key)
    return result


def write_sources(segments: Sequence[Segment], pair: LanguagePair, cache: StepCache, progress: Progress) -> list[str]:
    """The source of each segment, by the frozen reverse model if the user gave none; stored in sources.jsonl until the pairs are
    made. Sources that the same model wrote for earlier samples of the workspace are reused.
    """
    from engine.decoding.back_translation import write_back

    missing = [segment.text for segment in segments if segment.source is None]
    model = pair.backward.fingerprint()
    key = content_hash(cache.get("samples"), model, content_hash(missing), SEARCH)
    writer = content_hash(model, SEARCH)
    variant = cache.variant("sources", key)
    file = variant.folder / "sources.jsonl"
    if not variant.is_fresh("sources", key, file):
        progress.begin("Writing source sentences")
        reusable = earlier_sources(variant, writer)
        new = [text for text in missing if text not in reusable]
        written = dict(zip(new, write_back(pair.backward, new, variant.folder / "sources.partial.jsonl", progress), strict=True))
        variant.invalidate("sources")
        variant.invalidate(WRITER)
        rows = ({"source": reusable.get(text) or written[text], "target": text} for text in missing)
        write_jsonl(file, rows, "the source sentences")
        variant.mark_done("sources", key)
        variant.mark_done(WRITER, writer)
        if len(new) < len(missing):
            variant.made.discard("sources")  # its time is not that of all sentences
    sources = iter([str(row["source"]) for row in read_jsonl(file)])
    return [next(sources) if segment.source is None else segment.source for segment in segments]


def earlier_sources(variant: StepCache, writer: str) -> dict[str, str]:
    """The source of each sentence that the same reverse model wrote for earlier samples."""
    return sources_in(variant.folder) if variant.get(WRITER) == writer else {}


def sources_in(folder: Path) -> dict[str, str]:
    """The source that a reverse model wrote for each sentence, from sources.jsonl or the pairs made of it; empty if the file is
    damaged.
    """
    file = next((candidate for name in SOURCES if (candidate := folder / name).exists()), None)
    rows = read_jsonl(file) if file is not None else ()
    try:
        return {str(row["target"]): str(row["source"]) for row in rows if row.get("synthetic", True) and row["source"]}
    except (OSError, ValueError, LookupError):  # unreadable sources are written again
        return {}


def kept_share(needs: Capabilities, training: TrainingOptions) -> float | None:
    """The argument `keep` of `make_pairs`: None if neither the training nor the method needs the plausibility of sources."""
    if needs.trains and training.keep_pairs < 1:
        return training.keep_pairs
    return 1.0 if needs.needs_plausibility else None


def pairs_all(needs: Capabilities, training: TrainingOptions, knn: bool) -> bool:
    """Whether all samples need a source, not only the held-out ones."""
    return needs.trains or needs.needs_pairs or knn or training.domain_filter == "on"


def make_pairs(
    train: Sequence[Segment], valid: Sequence[Segment], pair: LanguagePair, keep: float | None, cache: StepCache,
    progress: Progress, exclusions: Exclusions | None = None, assets: Path | None = None,
) -> dict[str, list[SentencePair]]:  # fmt: skip
    """Step 3 or 4: pairs.jsonl, with sources by the frozen reverse model where the user gave none.

    Returns "train", "memory" and "valid". "train" has the most plausible share `keep` of the synthetic training pairs, less if too
    many are hallucinated; "memory" has all. `keep` None trains on all and does not compute plausibilities, which takes as long as
    writing the sources. With an empty `train` only the validation pairs are made. Training pairs that contain a phrase excluded
    with its sentences stay in the file as the part "excluded", and are not returned. `assets` contains the general text used to
    detect hallucinated words.
    """
    from engine.evaluation.pair_filter import best_supported
    from engine.evaluation.plausibility import HALLUCINATED, pair_of

    def written(include_train: bool) -> tuple[str, StepCache, bool]:
        """Key and folder of the pairs of all samples, or of the validation pairs only, and whether they exist."""
        made_from = cache.get("samples"), pair.forward.fingerprint(), pair.backward.fingerprint(), include_train
        key, before = content_hash(*made_from, 3), content_hash(*made_from, 2)
        if before in (cache.get("pairs written"), cache.get("pairs")):
            key = before  # pairs of an older version, which the project still uses
        variant = cache.variant("pairs written", key)
        file = variant.folder / "pairs.jsonl"
        return key, variant, variant.is_fresh("pairs written", key, file) or variant.is_fresh("pairs", key, file)

    key, variant, exists = written(True)
    if not exists and not train:
        key, variant, exists = written(False)
    file = variant.folder / "pairs.jsonl"
    if not exists:
        rows = write_pairs(train, valid, pair, cache, progress)
        variant.invalidate("pairs")
        write_jsonl(file, rows, "the sentence pairs")
        variant.mark_done("pairs written", key)
        variant.mark_done("pairs", key)
        (cache.variant("sources", cache.used["sources"]).folder / "sources.jsonl").unlink(missing_ok=True)
    cache.used["pairs"] = mark_excluded(file, key, pair.forward.target, variant, exclusions)
    rows = list(read_jsonl(file))
    if train and keep is not None and any(map(unweighed, rows)):
        add_plausibility(rows, pair, progress, assets, variant.folder / "returned.partial.jsonl")
        write_jsonl(file, rows, "the sentence pairs")
    stored: dict[str, list[SentencePair]] = {"train": [], "valid": []}
    for row in rows:
        part = row.pop("part")
        if part != EXCLUDED:
            stored[part].append(pair_of(row))
    stored["memory"] = stored["train"]
    sourced = [sample for sample in stored["train"] if sample.source]
    share = 1.0 if keep is None else keep
    supported = best_supported([sample.plausibility if sample.synthetic else None for sample in sourced], share, HALLUCINATED)
    stored["train"] = [sample for sample, selected in zip(sourced, supported, strict=True) if selected]
    return stored


def write_pairs(
    train: Sequence[Segment], valid: Sequence[Segment], pair: LanguagePair, cache: StepCache, progress: Progress
) -> list[dict[str, Any]]:
    """The rows of pairs.jsonl, with missing sources written. Held-out sentences need a source; sentences to remember do not."""
    segments = [*train, *valid]
    rows: list[dict[str, Any]] = [
        {
            "source": source,
            "target": segment.text,
            "domain": segment.domain,
            "part": "train" if i < len(train) else "valid",
            "synthetic": segment.source is None,
        }
        for i, (segment, source) in enumerate(zip(segments, write_sources(segments, pair, cache, progress), strict=True))
    ]
    return [row for row in rows if row["source"] or row["part"] == "train"]


def unweighed(row: Mapping[str, Any]) -> bool:
    """Whether the plausibility of a training pair's source is not known yet."""
    return bool(row["synthetic"]) and row["part"] != "valid" and "support" not in row


def add_plausibility(
    rows: Sequence[dict[str, Any]], pair: LanguagePair, progress: Progress, assets: Path | None, partial: Path
) -> None:
    """Weigh the sources of unweighed rows of pairs.jsonl; `partial` stores finished parts. Raises Cancelled."""
    from engine.corpora.general_text import general_sentences
    from engine.evaluation.plausibility import weigh

    progress.begin("Filtering synthetic pairs")
    lacking = [row for row in rows if unweighed(row)]
    general = general_sentences(assets, pair.forward.source) if assets is not None else []
    values = weigh(pair, [(row["source"], row["target"]) for row in lacking], general, progress, partial)
    for row, value in zip(lacking, values, strict=True):
        row["support"], row["plausibility"] = round(value.support, 4), round(value.plausibility, 4)


def mark_excluded(file: Path, key: str, language: str, cache: StepCache, exclusions: Exclusions | None) -> str:
    """Mark the training pairs in pairs.jsonl that the user excluded, without writing their sources again, which takes long. Returns
    the key of the pairs in use.

    The key "pairs" identifies the pairs and which of them are used, "pairs written" only the pairs.
    """
    left_out = exclusions.sentence_content() if exclusions else []
    used_key = content_hash(key, left_out) if left_out else key
    if cache.is_fresh("pairs", used_key, file):
        return used_key
    holds = exclusions.holder(language) if exclusions else lambda _: False
    rows = list(read_jsonl(file))
    for row in rows:
        if row["part"] != "valid":
            row["part"] = EXCLUDED if holds(row["target"]) else "train"
    cache.invalidate("pairs")
    cache.mark_done("pairs written", key)
    write_jsonl(file, rows, "the sentence pairs")
    cache.mark_done("pairs", used_key)
    return used_key


def without_excluded(phrases: PhraseSet, exclusions: Exclusions, language: str) -> PhraseSet:
    """The phrases except those that the user excluded."""
    from engine.phrases import PhraseSet

    return PhraseSet(exclusions.keep(phrases, language), phrases.parser) if exclusions else phrases


@contextlib.contextmanager
def workspace_lock(workspace: Path) -> Iterator[None]:
    """Lock the workspace against other processes. Raises InputError if another process is using it."""
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
                "Another process is using {workspace}. Wait for it, or choose another output.", workspace=workspace
            ) from None
        yield
    finally:
        file.close()
