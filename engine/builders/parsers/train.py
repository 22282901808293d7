"""Training a language's parser from treebanks: read, split, train each part with stanza's trainers, install.

Finished parts are kept in a hidden folder beside the result until the whole set is done, so that repeating the command
continues an interrupted training. The result is only installed when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.builders.parsers.conllu import ConlluSentence
from engine.builders.parsers.contractions import open_contractions
from engine.builders.parsers.options import ParserTraining
from engine.builders.parsers.prepare import mwt_counts, write_characters, write_dependencies, write_trees
from engine.builders.parsers.shrink import shrink
from engine.builders.parsers.stages import STAGES, Room, run_stage
from engine.builders.parsers.treebanks import Treebanks, read_text, read_treebanks
from engine.builders.parsers.vectors import TextSource, no_vectors, read_sentences, save_vectors, segment, train_vectors
from engine.builders.parsers.watch import watched
from engine.core.atomic_files import check_writable
from engine.core.cores import one_thread
from engine.core.json_object import Json
from engine.core.languages import unspaced
from engine.core.progress import Progress
from engine.core.step_cache import StepCache, content_hash, digest_files
from engine.errors import InputError, storage_errors
from engine.phrases.languages import stanza_code
from engine.phrases.parser_resources import install, read_resources, set_bytes
from engine.phrases.stanza_models import local_pipeline

FEWEST = 50  # training sentences; fewer cannot train a usable parser
DEV_AT_MOST = 1000  # sentences for choosing the best model; more only take longer
SHORTEST, LONGEST = 2, 4  # characters of a listed word; single characters do not help, and longer words are rare
TWICE = 2  # a word that occurs once in training is left out, so that it looks like the unknown words of other texts


@dataclass(frozen=True)
class ParserSources:
    """The files that a parser is trained from."""

    treebanks: tuple[Path, ...]
    vectors_text: tuple[TextSource, ...] = ()
    words: Path | None = None  # a word list, for languages without spaces


@dataclass(frozen=True)
class TrainedParser:
    """An installed parser set and a record of its training."""

    folder: Path
    language: str
    package: str
    processors: tuple[str, ...]
    bytes: int
    files: list[Json]
    sizes: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        return self.folder / self.language


def train_parser(
    language: str, sources: ParserSources, output: Path, *, options: ParserTraining | None = None, progress: Progress | None = None
) -> tuple[TrainedParser, Treebanks]:
    """Train a set for `language` into `output`, a folder in stanza's layout, as the default set of the language.

    Dependency treebanks (.conllu) are required; constituency treebanks (.ptb) of the same texts add a constituency parser.
    Raises InputError on files that cannot be used or are too small, MissingError without stanza or gensim, StorageError,
    Cancelled (finished parts are kept, and repeating the command continues).
    """
    options, progress = options or ParserTraining(), progress or Progress()
    code = stanza_code(language)
    check_writable(output / code / "README.md", "the parser")
    read_resources(output)  # a malformed list is reported now, not after an hour
    progress.begin("Reading the treebanks")
    banks = read_treebanks(sources.treebanks, held_out=options.held_out, seed=options.seed)
    check_size(banks)
    banks, opened = open_contractions(banks)
    notes = (f"{opened} contractions that stood as one word were opened as the others are.",) if opened else ()
    work = output / ".training" / f"{code}-{options.package}"
    with storage_errors("the parser's parts", work), one_thread():
        work.mkdir(parents=True, exist_ok=True)
        room = Room(work / "data", work / "done", code, options)
        write_data(room, banks, sources.words)
        files, seconds = train_parts(room, sources, banks, work, progress)
        progress.begin("Writing the parser")
        install(output, code, options.package, shrunk(files, work))
        shutil.rmtree(work)
        with contextlib.suppress(OSError):  # another language is being trained there
            work.parent.rmdir()
    sizes = {
        f"{kind}_{part}": len(getattr(parts, part))
        for kind, parts in (("sentences", banks.sentences), ("trees", banks.trees))
        for part in ("train", "dev", "test")
    }
    trained = TrainedParser(
        folder=output,
        language=code,
        package=options.package,
        processors=tuple(files),
        bytes=set_bytes(output, code, options.package),
        files=[file.to_mapping() for file in banks.files],
        sizes=sizes,
        seconds=seconds,
        notes=notes,
    )
    return trained, banks


def check_size(banks: Treebanks) -> None:
    """Raises InputError if there are too few sentences for training or for choosing the best model."""
    if not any(file.kind == "dependency" for file in banks.files):
        raise InputError("A parser needs dependency trees: give a CoNLL-U treebank (.conllu) of the language too.")
    for unit, parts in (("sentences", banks.sentences), ("constituency trees", banks.trees)):
        total = len(parts.train) + len(parts.dev) + len(parts.test)
        if unit == "constituency trees" and not total:
            continue
        if len(parts.train) < FEWEST or not parts.dev:
            raise InputError(
                f"The treebanks hold {len(parts.train)} {unit} to learn from and {len(parts.dev)} to choose the best model "
                f"by: at least {FEWEST} and 1 are needed, besides files named -dev and -test."
            )


def write_data(room: Room, banks: Treebanks, words: Path | None) -> None:
    """Write the files that the trainers read."""
    room.data.mkdir(exist_ok=True)
    room.done.mkdir(exist_ok=True)
    dev = banks.sentences.dev[:DEV_AT_MOST]
    if unspaced(room.language):
        write_words(room.data / "words.txt", banks.sentences.train, words, room.options.word_frequency)
    tags = bool(banks.trees.train)  # constituency trees use XPOS tags
    for name, sentences in (("train", banks.sentences.train), ("dev", dev)):
        write_characters(sentences, room.data, name, room.language, room.options.seed)
        write_dependencies(sentences, room.data / f"{name}.words.conllu", tags=tags)
    if tags:
        write_trees(banks.trees.train, room.data / "train.ptb")
        write_trees(banks.trees.dev[:DEV_AT_MOST], room.data / "dev.ptb")


def train_parts(
    room: Room, sources: ParserSources, banks: Treebanks, work: Path, progress: Progress
) -> tuple[dict[str, Path], dict[str, float]]:
    """Train every part in turn, skipping finished ones; returns the file of each processor, and the seconds by part trained."""
    cache = StepCache(work)
    fingerprint = content_hash(
        digest_files(map(str, sources.treebanks)),
        digest_files([str(source.path) for source in sources.vectors_text]),
        [source.column for source in sources.vectors_text],
        digest_files([str(sources.words)] if sources.words else []),
        room.options.to_mapping(),
    )
    parts = ["tokenize"]
    if mwt_counts(banks.sentences.train):
        parts.append("mwt")
    parts += ["pretrain", "pos", "depparse"]
    if banks.trees.train:
        parts.append("constituency")
    files, seconds = {}, {}
    for index, part in enumerate(parts):
        target = room.model(part)
        files[part] = target
        if cache.is_fresh(part, fingerprint, target):
            continue
        progress.begin(STAGES[part][0] if part in STAGES else "Training word vectors", index, len(parts))
        started = time.monotonic()
        cache.invalidate(part)
        half = work / f"{part}.part.pt"
        half.unlink(missing_ok=True)
        if part == "pretrain":
            make_vectors(room, sources, "mwt" in parts, half, progress)
        else:
            with watched(progress, room.options.minutes, half) as watch:
                run_stage(part, room, watch, half)
        os.replace(half, target)
        cache.mark_done(part, fingerprint)
        seconds[part] = round(time.monotonic() - started, 1)
    return files, seconds


def shrunk(files: dict[str, Path], work: Path) -> dict[str, Path]:
    """The parts as shipped, in half precision; the vector file is unchanged."""
    small = work / "small"
    small.mkdir(exist_ok=True)
    shipped = {}
    for part, file in files.items():
        shipped[part] = file
        if part != "pretrain":
            shipped[part] = small / file.name
            shrink(part, file, shipped[part], files["pretrain"])
    return shipped


def make_vectors(room: Room, sources: ParserSources, contractions: bool, target: Path, progress: Progress) -> None:
    """Write the set's vector file, from text split by the tokenizer just trained; without text, a placeholder."""
    if not sources.vectors_text:
        no_vectors(target)
        return
    options = room.options
    texts = read_sentences(sources.vectors_text, options.vector_sentences)
    words = segment(texts, tokenizer_of(room, contractions), progress)
    result, table = train_vectors(
        list(words), size=options.vector_size, words=options.vector_words, seed=options.seed, progress=progress
    )
    save_vectors(result, table, target)


def tokenizer_of(room: Room, contractions: bool) -> Any:
    """A stanza pipeline of the trained tokenizer, and the expander of `contractions`, that only splits text into words."""
    processors = {"tokenize": room.options.package} | ({"mwt": room.options.package} if contractions else {})
    (room.done / "resources.json").write_text("{}", encoding="utf-8")
    paths = {f"{name}_model_path": str(room.model(name)) for name in processors}
    return local_pipeline(room.language, room.done, processors, allow_unknown_language=True, tokenize_no_ssplit=True, **paths)


def write_words(path: Path, sentences: Sequence[ConlluSentence], word_list: Path | None, least: int) -> None:
    """Write the words that occur at least twice in the treebanks, and those of the list `word_list`, one per line.

    A line of the list holds a word and, optionally, its frequency (as in jieba's dict.txt); words below `least` are left out.
    Raises InputError on a list that is not text or yields no words.
    """
    counts = Counter(token.form for sentence in sentences for token in sentence.tokens)
    words = {word for word, count in counts.items() if count >= TWICE and len(word) >= SHORTEST}
    if word_list is not None:
        results = set()
        for line in read_text(word_list).splitlines():
            cells = line.split()
            rare = len(cells) > 1 and cells[1].isdecimal() and int(cells[1]) < least
            if cells and not rare and SHORTEST <= len(cells[0]) <= LONGEST and cells[0].isalpha():
                results.add(cells[0])
        if not results:
            raise InputError(f"{word_list} holds no words of {SHORTEST} to {LONGEST} characters: give one word per line.")
        words |= results
    path.write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
