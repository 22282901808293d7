"""Training word vectors: text split by the tokenizer just trained, gensim's skip-gram, stanza's vector file format.

Skip-gram with negative sampling: Mikolov et al. 2013, https://arxiv.org/abs/1310.4546.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.builders.parsers.treebanks import read_text
from engine.core.progress import Progress
from engine.errors import InputError, MissingError

CHUNK = 500  # sentences between two progress updates
LONGEST = 400  # characters; longer lines are rarely sentences


@dataclass(frozen=True)
class TextSource:
    """A file with one sentence per line, or a tab-separated file with the column to read (from 1)."""

    path: Path
    column: int = 1

    @classmethod
    def parse(cls, text: str) -> TextSource:
        """Parse `FILE` or `FILE:COLUMN`: `pairs.tsv.gz:2` is the second column of that file."""
        match = re.fullmatch(r"(.+):([1-9]\d?)", text)
        return cls(Path(match[1]), int(match[2])) if match else cls(Path(text))

    def __str__(self) -> str:
        return f"{self.path}:{self.column}" if self.column > 1 else str(self.path)


def read_sentences(sources: Sequence[TextSource], limit: int) -> list[str]:
    """At most `limit` distinct lines of plain or gzipped text, spread evenly over all files.

    Raises InputError on a file that is not text or lacks the column.
    """
    lines: dict[str, None] = {}
    for source in sources:
        before = len(lines)
        for line in read_text(source.path).split("\n"):
            cells = line.rstrip("\r").split("\t")
            if source.column <= len(cells):
                text = " ".join(cells[source.column - 1].split())
                if 1 < len(text) <= LONGEST:
                    lines[text] = None
        if len(lines) == before:
            raise InputError(f"{source.path} gave no sentences in column {source.column}: give one sentence per line.")
    result = list(lines)
    if len(result) <= limit:
        return result
    return [result[index * len(result) // limit] for index in range(limit)]


def segment(sentences: Sequence[str], pipeline: Any, progress: Progress) -> Iterator[list[str]]:
    """Yield the words of each sentence, split by a stanza pipeline that only tokenizes."""
    from stanza.models.common.doc import Document

    progress.advance(0, len(sentences), "cutting text into words")
    remaining = iter(sentences)
    done = 0
    while batch := list(islice(remaining, CHUNK)):
        for document in pipeline.bulk_process([Document([], text=text) for text in batch]):
            for sentence in document.sentences:
                yield [word.text for word in sentence.words]
        done += len(batch)
        progress.advance(done, len(sentences), "cutting text into words")


def train_vectors(
    sentences: Sequence[Sequence[str]], *, size: int, words: int, seed: int, progress: Progress
) -> tuple[list[str], Any]:
    """Train skip-gram vectors of lower-cased words; returns the words, most frequent first, and vectors (float32, a row per word).

    Raises MissingError if gensim is not installed, InputError if the text is too small.
    """
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError:
        raise MissingError(
            "gensim is not installed: run `pip install 'tailor-mt[parsers]'` to train word vectors, or leave out --vectors-text."
        ) from None
    epochs = 5

    class Report(CallbackAny2Vec):  # type: ignore[misc]
        done = 0

        def on_epoch_end(self, model: Any) -> None:
            self.done += 1
            progress.advance(self.done, epochs, "learning word vectors")

    folded = [[fold(word) for word in sentence] for sentence in sentences]
    counts = Counter(word for sentence in folded for word in sentence)
    if sum(count >= 3 for count in counts.values()) < 100:
        raise InputError("The text for word vectors is too small: give some thousand sentences, or leave it out.")
    progress.advance(0, epochs, "learning word vectors")
    model = Word2Vec(
        folded,
        vector_size=size,
        sg=1,
        window=4,
        min_count=3,
        negative=5,
        sample=1e-4,
        epochs=epochs,
        workers=1,
        seed=seed,
        max_final_vocab=words,
        callbacks=[Report()],
    )
    return list(model.wv.index_to_key), model.wv.vectors


def fold(word: str) -> str:
    """The word as stanza looks it up in a vector file: in lower case, with no-break spaces for spaces."""
    return word.lower().replace(" ", "\xa0")


def save_vectors(words: Sequence[str], vectors: Any, path: Path) -> None:
    """Write stanza's vector file; the rows of its special symbols (padding, unknown, empty, root) are zero. Raises OSError
    if nothing was written.
    """
    from stanza.models.common.pretrain import Pretrain, PretrainedWordVocab
    from stanza.models.common.vocab import VOCAB_PREFIX

    table = np.zeros((len(VOCAB_PREFIX) + len(words), vectors.shape[1]), dtype=np.float32)
    table[len(VOCAB_PREFIX) :] = vectors
    pretrain = Pretrain(str(path), save_to_file=False)
    pretrain._vocab = PretrainedWordVocab(list(words))
    pretrain._emb = torch.from_numpy(table)
    pretrain.save(str(path))
    if not path.is_file():  # stanza only warns
        raise OSError(f"{path} was not written")


def no_vectors(path: Path) -> None:
    """Write a placeholder for parsers trained without text, with one zero vector: stanza's constituency parser needs a file."""
    save_vectors(["the"], np.zeros((1, 8), dtype=np.float32), path)
