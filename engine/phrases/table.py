"""All phrases of a workspace as columns, fast to filter and sort even for many phrases: phrases.table.npz.

Made from phrases.jsonl and the sentences of the phrases: the counts of each phrase per domain and in general text, and from
these its keyness. These counts are of word sequences (`Finder`), in both kinds of text; `counts` are the parser's. The file
stores a hash of the phrases.jsonl that it was made from and is rebuilt if that changes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from engine.core.atomic_files import atomic_write
from engine.core.progress import Progress
from engine.corpora import Segment
from engine.errors import CorpusError
from engine.phrases.keyness import Keyness, keyness
from engine.phrases.occurrences import Finder
from engine.phrases.types import PhraseSet

PHRASES_FILE = "phrases.jsonl"
TABLE_FILE = "phrases.table.npz"
VERSION = 1
BETWEEN = "\x00"  # occurs in no text


@dataclass(frozen=True)
class PhraseTable:
    """Columns of one value per phrase, in the order of phrases.jsonl."""

    texts: list[str]
    lengths: np.ndarray  # (n,) tokens
    counts: np.ndarray  # (n,) occurrences found by the parser
    labels: np.ndarray  # (n,) indices into `label_names`
    label_names: list[str]
    domains: list[str]
    by_domain: np.ndarray  # (n, k) occurrences in each domain
    words: list[int]  # (k,) of each domain
    general: np.ndarray  # (n,) occurrences in general text
    general_words: int  # 0 if there is no general text in the language
    made_from: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def folded(self) -> list[str]:
        """The case-folded texts, for searching."""
        return BETWEEN.join(self.texts).casefold().split(BETWEEN) if self.texts else []

    @cached_property
    def own(self) -> np.ndarray:
        """(n,) occurrences of each phrase in all domains."""
        return self.by_domain.sum(1)

    @cached_property
    def keyness(self) -> Keyness:
        """Keyness relative to the general text; zeros if there is none."""
        return keyness(self.own, self.general, sum(self.words), self.general_words)

    def save(self, path: Path) -> None:
        """Write the table atomically. Raises StorageError."""
        metadata = {
            "version": VERSION, "labels": self.label_names, "domains": self.domains, "words": self.words,
            "general_words": self.general_words, "made_from": self.made_from,
        }  # fmt: skip
        with atomic_write(path, "the table of phrases") as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                about=_bytes(json.dumps(metadata)),
                texts=_bytes(BETWEEN.join(self.texts)),
                **{name: getattr(self, name) for name in ("lengths", "counts", "labels", "by_domain", "general")},
            )

    @classmethod
    def load(cls, path: Path) -> PhraseTable | None:
        """Read the result of `save`; None if it is missing, damaged or of another version and must be rebuilt."""
        try:
            with np.load(path, allow_pickle=False) as result:
                metadata = json.loads(result["about"].tobytes())
                texts = result["texts"].tobytes().decode("utf-8").split(BETWEEN)
                columns = {name: result[name] for name in ("lengths", "counts", "labels", "by_domain", "general")}
            if metadata["version"] != VERSION:
                return None
            texts = texts if len(columns["lengths"]) else []
            if any(len(column) != len(texts) for column in columns.values()):
                return None
            return cls(
                texts, label_names=metadata["labels"], domains=metadata["domains"], words=metadata["words"],
                general_words=metadata["general_words"], made_from=metadata["made_from"], **columns,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            return None


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8)


def make_table(
    phrases: PhraseSet, segments: Sequence[Segment], language: str, general: Sequence[str] = (), *,
    made_from: str = "", progress: Progress | None = None,
) -> PhraseTable:  # fmt: skip
    """Count the phrases in the sentences they are from, by domain, and in `general` text. Raises Cancelled."""
    names: dict[str, int] = {}
    labels = [names.setdefault(phrase.label, len(names)) for phrase in phrases]
    texts = [phrase.text.replace(BETWEEN, " ") for phrase in phrases]
    finder = Finder(texts, language)
    domains = list(dict.fromkeys(segment.domain for segment in segments))
    counted = [
        finder.count((segment.text for segment in segments if segment.domain == domain), progress) for domain in domains
    ]  # (k) of (n,), words
    in_general, general_words = finder.count(general, progress)
    return PhraseTable(
        texts=texts,
        lengths=np.array([phrase.length for phrase in phrases], dtype=np.int32),
        counts=np.array([phrase.count for phrase in phrases], dtype=np.int64),
        labels=np.array(labels, dtype=np.int32),
        label_names=list(names),
        domains=domains,
        by_domain=np.stack([count for count, _ in counted], 1) if counted else np.zeros((len(texts), 0), dtype=np.int64),
        words=[words for _, words in counted],
        general=in_general,
        general_words=general_words,
        made_from=made_from,
    )


def open_table(
    workspace: Path, language: str, assets: Path, segments: Sequence[Segment] | None = None,
    phrases: PhraseSet | None = None, progress: Progress | None = None,
) -> PhraseTable:  # fmt: skip
    """The table of a workspace's phrases, built (within seconds) if the stored one is missing or outdated.

    `segments` and `phrases` are read from the workspace if not given. Raises CorpusError or InputError if they cannot be read,
    Cancelled.
    """
    made_from = _hash(workspace / PHRASES_FILE)
    result = PhraseTable.load(workspace / TABLE_FILE)
    if result is not None and result.made_from == made_from:
        return result
    phrases = phrases or PhraseSet.load(workspace / PHRASES_FILE)
    if segments is None:
        from engine.corpora import Corpus

        segments = Corpus.load(workspace).segments
    table = make_table(
        phrases, segments, language, general_texts(language, assets, segments), made_from=made_from, progress=progress
    )
    table.save(workspace / TABLE_FILE)
    return table


def general_texts(language: str, assets: Path, segments: Sequence[Segment]) -> list[str]:
    """The bundled general text of a language without the user's sentences; empty if none is bundled."""
    from engine.corpora.general_text import general_domain

    try:
        return general_domain(assets, language, exclude=[segment.text for segment in segments])
    except CorpusError:
        return []


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    except OSError:
        return ""


def layers_of(lengths: np.ndarray, layers: int) -> np.ndarray:
    """The decoder layer (n,) of each phrase, like `engine.memory.assign_layers` in the order short to long, but vectorised."""
    order = np.argsort(lengths, kind="stable")
    result = np.zeros(len(lengths), dtype=np.int64)
    result[order] = np.arange(len(lengths)) * layers // max(1, len(lengths))
    return result
