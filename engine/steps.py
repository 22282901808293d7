"""The steps of the main job that are the same for every method: samples, phrases, sentence pairs.

Each leaves files in the workspace and a stamp of what it was made from; while the stamp holds, it is skipped.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import CorpusError, InputError
from engine.files import write_jsonl
from engine.languages import canonical
from engine.progress import Progress
from engine.request import CustomizeRequest, check, corpus_config, phrase_config
from engine.settings import Settings
from engine.stamps import Stamps, digest, digest_files

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair
    from engine.corpora import Corpus, Decisions, Segment
    from engine.methods.samples import SentencePair
    from engine.phrases import PhraseSet
    from engine.phrases.exclusions import Exclusions

__all__ = [
    "STEPS",
    "checked",
    "find_phrases",
    "held",
    "load_pair",
    "make_pairs",
    "read_samples",
    "split_samples",
    "without_excluded",
    "write_sources",
]

STEPS = 7
EXCLUDED = "excluded"  # the part of pairs.jsonl that is not trained on
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


def read_samples(request: CustomizeRequest, workspace: Path, stamps: Stamps, progress: Progress) -> Corpus:
    """Step 1: corpus.jsonl and import_report.json, with what was skipped or noticed beside them."""
    from engine.corpora import Corpus, Decisions, ImportReport, import_to

    options, decisions = corpus_config(request), Decisions.load(workspace)
    stamp = samples_stamp(request, decisions)
    if stamps.holds("samples", stamp, workspace / "corpus.jsonl"):
        return Corpus.load(workspace)

    def enough(report: ImportReport) -> None:
        if report.kept < FEWEST:
            raise CorpusError(
                f"Only {report.kept} sentences in {request.target} are left of {report.segments} in the samples; at least "
                f"{FEWEST} are needed, some hundreds are better."
            )
        stamps.begin("samples")

    progress.begin("Reading samples", 0, STEPS)
    import_to(
        workspace, [Path(sample) for sample in request.samples], request.target, source_language=request.source,
        domains=request.domains, options=options, decisions=decisions, progress=progress, check=enough,
    )  # fmt: skip
    stamps.set("samples", stamp)
    return Corpus.load(workspace)


def samples_stamp(request: CustomizeRequest, decisions: Decisions) -> str:
    """What the samples step is made from. Settings and decisions count where there are some, so older stamps hold."""
    own: list[Any] = [{"options": request.corpus_options}] if request.corpus_options else []
    return digest(
        request.source, request.target, digest_files(request.samples), *request.domains, *own, *decisions.to_list()
    )


def split_samples(corpus: Corpus) -> tuple[list[Segment], list[Segment]]:
    """Training and validation sentences: a twelfth for validation, 16 to 500, nothing alike on both sides."""
    from engine.corpora import split

    parts = split(corpus, valid=min(500, max(min(16, len(corpus) // 4), len(corpus) // 12)))
    if not parts.valid or len(parts.train) < FEWEST // 2:
        raise CorpusError("The samples are too much alike to keep some for validation. Add different sentences.")
    return parts.train, parts.valid


def find_phrases(
    request: CustomizeRequest, train: list[Segment], valid: list[Segment], base: BaseModel, stamps: Stamps, progress: Progress,
    settings: Settings,
) -> PhraseSet:  # fmt: skip
    """Step 2: phrases.jsonl, from the training part alone, so that validation stays honest; trees and counts beside it."""
    from engine.phrases import PhraseSet, extract_phrases
    from engine.phrases.table import open_table
    from engine.phrases.trees import TREES_FILE, writing_trees

    options = phrase_config(request)
    stamp = digest(stamps.get("samples"), options.to_mapping(), base.fingerprint(), *map(str, settings.parser_dirs))
    home = stamps.home("phrases", stamp)
    file = home.folder / "phrases.jsonl"
    if home.holds("phrases", stamp, file):
        return PhraseSet.load(file)
    progress.begin("Finding phrases", 1, STEPS)
    shown = home is stamps  # the phrases that pages show, with trees and counts beside them
    with writing_trees(home.folder / TREES_FILE) if shown else contextlib.nullcontext() as trees:
        found = extract_phrases(
            [segment.text for segment in train],
            request.target,
            options,
            parser_dirs=settings.parser_dirs,
            pieces=base.pieces,
            trees=trees,
            draw_too=[segment.text for segment in valid],
            progress=progress,
        )
    home.begin("phrases")
    found.save(file)
    if shown:
        progress.begin("Comparing with general text", 1, STEPS)
        open_table(home.folder, request.target, settings.assets_dir, train, found, progress)
    home.set("phrases", stamp)
    return found


def write_sources(segments: Sequence[Segment], pair: LanguagePair, stamps: Stamps, progress: Progress) -> list[str]:
    """The source of each segment, by the frozen reverse model where the user gave none; kept in sources.jsonl until the
    pairs are made of them.
    """
    from engine.decoding.resumable import back_translate_all

    missing = [segment.text for segment in segments if segment.source is None]
    stamp = digest(stamps.get("samples"), pair.backward.fingerprint(), digest(missing))
    home = stamps.home("sources", stamp)
    file = home.folder / "sources.jsonl"
    if not home.holds("sources", stamp, file):
        progress.begin("Writing source sentences", 4, STEPS)
        made = back_translate_all(pair.backward, missing, home.folder / "sources.partial.jsonl", progress)
        home.begin("sources")
        write_jsonl(file, ({"source": source} for source in made), "the source sentences")
        home.set("sources", stamp)
    with file.open(encoding="utf-8") as lines:
        written = iter([str(json.loads(line)["source"]) for line in lines])
    return [next(written) if segment.source is None else segment.source for segment in segments]


def make_pairs(
    train: Sequence[Segment], valid: Sequence[Segment], pair: LanguagePair, keep: float, stamps: Stamps, progress: Progress,
    exclusions: Exclusions | None = None,
) -> dict[str, list[SentencePair]]:  # fmt: skip
    """Step 3 or 4: pairs.jsonl; sources by the frozen reverse model, but where the user gave them.

    Returns "train" and "valid"; of the synthetic training pairs the best supported share `keep`. With an empty `train` only
    the validation pairs are made. Training pairs that hold a phrase which the user left out with its sentences stay in the
    file as the part "excluded", and are not returned.
    """
    from engine.methods.samples import SentencePair
    from engine.training.selection import best_supported, support

    stamp = digest(stamps.get("samples"), pair.forward.fingerprint(), pair.backward.fingerprint(), bool(train), 2)
    home = stamps.home("pairs written", stamp)
    file = home.folder / "pairs.jsonl"
    if not home.holds("pairs written", stamp, file) and not home.holds("pairs", stamp, file):
        both = [*train, *valid]
        made_rows: list[dict[str, Any]] = [
            {
                "source": source,
                "target": segment.text,
                "domain": segment.domain,
                "part": "train" if i < len(train) else "valid",
                "synthetic": segment.source is None,
            }
            for i, (segment, source) in enumerate(zip(both, write_sources(both, pair, stamps, progress), strict=True))
        ]
        rows = [row for row in made_rows if row["source"]]
        progress.begin("Weighing the sentence pairs", 4, STEPS)
        weighed = [row for row in rows if row["synthetic"]]
        values = support(pair.forward, [(row["source"], row["target"]) for row in weighed], progress)
        for row, value in zip(weighed, values, strict=True):
            row["support"] = round(value, 4)
        home.begin("pairs")
        write_jsonl(file, rows, "the sentence pairs")
        home.set("pairs written", stamp)
        home.set("pairs", stamp)
        (stamps.home("sources", stamps.used["sources"]).folder / "sources.jsonl").unlink(missing_ok=True)
    stamps.used["pairs"] = set_excluded_apart(file, stamp, pair.forward.target, home, exclusions)
    stored: dict[str, list[SentencePair]] = {"train": [], "valid": []}
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            part = row.pop("part")
            if part != EXCLUDED:
                stored[part].append(SentencePair(**row))
    kept = best_supported([one.support for one in stored["train"]], keep)
    stored["train"] = [one for one, good in zip(stored["train"], kept, strict=True) if good]
    return stored


def set_excluded_apart(file: Path, stamp: str, language: str, stamps: Stamps, exclusions: Exclusions | None) -> str:
    """Mark the training pairs in pairs.jsonl that the user left out; sources, which take long, are not written again. Returns
    the stamp of the pairs as they are used.

    The stamp "pairs" says which pairs there are and which of them are used, "pairs written" only the first.
    """
    left_out = exclusions.sentence_stamp() if exclusions else []
    wanted = digest(stamp, left_out) if left_out else stamp
    if stamps.holds("pairs", wanted, file):
        return wanted
    holds = exclusions.holder(language) if exclusions else lambda _: False
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["part"] != "valid":
            row["part"] = EXCLUDED if holds(row["target"]) else "train"
    stamps.begin("pairs")
    stamps.set("pairs written", stamp)
    write_jsonl(file, rows, "the sentence pairs")
    stamps.set("pairs", wanted)
    return wanted


def without_excluded(phrases: PhraseSet, exclusions: Exclusions, language: str) -> PhraseSet:
    """The phrases but for those that the user left out."""
    from engine.phrases import PhraseSet

    return PhraseSet(exclusions.keep(phrases, language), phrases.parser) if exclusions else phrases


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
