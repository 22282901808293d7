"""Retrieval of sentence pairs for an input sentence, according to the settings.

A pair is retrieved by comparing its source with the input sentence. If its source is synthetic and implausible, the pair's target
is compared with the base's translation of the input sentence instead. If nothing is found, implausible sources are used after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.core.tensor_files import load_tensors, save_tensors
from engine.corpora.tokenize import joined, words
from engine.corpora.types import SentencePair
from engine.errors import BundleError
from engine.memory.dense_ngrams import DenseNgrams, content, set_vectors
from engine.memory.neighbours import IdfNgrams, IdfSentences, chosen
from engine.memory.ngrams import all_ngrams
from engine.memory.self_match import OwnText
from engine.methods.ngram_memory.config import NgramMemoryConfig

VECTORS = "memory.safetensors"
POOR = 0.5  # plausibility of a source below which its pair is retrieved by the target


def record_vectors(base: BaseModel, pairs: Sequence[SentencePair], widths: Sequence[int], path: Path, progress: Progress) -> None:
    """Write the vectors of all n-grams of the sources: `ngrams.{width}` (G, d) in half precision, `lengths` (N,)."""
    vectors, lengths = set_vectors(base, [pair.source for pair in pairs], widths, progress)
    tensors = {f"ngrams.{width}": torch.from_numpy(result).half() for width, result in vectors.items()}
    save_tensors(path, {**tensors, "lengths": torch.from_numpy(lengths)}, "the vectors")


def load_vectors(path: Path, base: BaseModel, pairs: int, widths: Sequence[int]) -> tuple[dict[int, Any], Any]:
    """Load the file of `record_vectors`. Raises BundleError if it is missing or does not fit the pairs."""
    if not path.exists():
        raise BundleError(
            "it has no {path}, from which the method retrieves n-grams. Get a new copy of the bundle.", path=path.name
        )
    tensors = load_tensors(path)
    lengths = tensors.pop("lengths", None)
    fits = set(tensors) == {f"ngrams.{width}" for width in widths}
    fits = fits and lengths is not None and lengths.shape == (pairs,) and not lengths.is_floating_point()
    if fits and lengths is not None:
        inside = bool((lengths >= 0).all()) and bool((lengths <= base.max_tokens).all())
        fits = inside and all(
            tuple(tensors[f"ngrams.{width}"].shape) == (len(all_ngrams(lengths.numpy(), width)[0]), base.d_model)
            for width in widths
        )
    if not fits or lengths is None:
        raise BundleError("{path} does not match the sentence pairs stored with it. Get a new copy of the bundle.", path=path.name)
    return {width: tensors[f"ngrams.{width}"].float().numpy() for width in widths}, lengths.numpy()


class Retriever:
    """Retrieves pairs for a sentence; in training, excludes the sentence's own pair and near-duplicates."""

    def __init__(self, base: BaseModel, pairs: Sequence[SentencePair], config: NgramMemoryConfig, vectors: Path | None) -> None:
        self.config, self.pairs = config, pairs
        self.dense = config.retrieval == "dense_ngram"
        self._own_cache: dict[tuple[str, str], list[int]] = {}
        self.poor: set[int] = set()  # pairs that are retrieved by their targets
        if self.dense:
            result, lengths = load_vectors(vectors or Path(VECTORS), base, len(pairs), sorted(set(config.widths)))
            self.engine: Any = DenseNgrams(result, lengths, depth=config.search_depth, widths=config.widths)
            return
        sentences = source_words(base, base.encode([pair.source for pair in pairs]))
        by_sentence = config.retrieval == "idf_sentence"
        self.engine = IdfSentences(sentences) if by_sentence else IdfNgrams(sentences, config.widths)
        self.poor = {i for i, pair in enumerate(pairs) if pair.plausibility < POOR}
        if self.poor:
            targets = [words(pair.target) for pair in pairs]
            self.by_target: Any = IdfSentences(targets) if by_sentence else IdfNgrams(targets, config.widths)
            self.good = set(range(len(pairs))) - self.poor

    @cached_property
    def own_text(self) -> OwnText:
        """The near-duplicates in the retrieval set; needed only in training."""
        return OwnText([pair.target for pair in self.pairs], [pair.source for pair in self.pairs])

    def find(
        self, base: BaseModel, ids: Sequence[int], states: torch.Tensor, pair: SentencePair | None = None, draft: str = ""
    ) -> list[int]:
        """Indices of the pairs retrieved for a source sentence, given its ids (S,) and frozen states (S, d), the best first.

        `pair` is the pair of the sentence in training: neither it nor near-duplicates are retrieved, and results are cached, since
        the same pairs recur in every epoch. `draft` is the base's translation of the sentence, required if `wants_draft`.
        """
        if pair is None:
            return self._search(base, ids, states, draft, self.config.neighbours_translating, set())
        name = pair.source, pair.target
        if name not in self._own_cache:
            shut = self.own_text.of(pair.source, pair.target)
            self._own_cache[name] = self._search(base, ids, states, draft, self.config.neighbours, shut)
        return self._own_cache[name]

    def wants_draft(self, pair: SentencePair | None = None) -> bool:
        """Whether retrieval for a sentence requires the base's translation of it."""
        return bool(self.poor) and (pair is None or (pair.source, pair.target) not in self._own_cache)

    def _search(
        self, base: BaseModel, ids: Sequence[int], states: torch.Tensor, draft: str, top_k: int | None, shut: set[int]
    ) -> list[int]:
        if self.dense:
            query: Any = content(base, ids, states)  # (T, d)
        else:
            (query,) = source_words(base, [ids])
        if self.config.retrieval == "idf_sentence" and top_k is None:
            top_k = self.config.neighbours
        hits = self.engine.neighbours(query, top_k, shut | self.poor)
        if self.poor:
            hits = chosen([*hits, *self.by_target.neighbours(words(draft), top_k, shut | self.good)], top_k)
            if not hits:  # poor evidence is better than none
                hits = self.engine.neighbours(query, top_k, shut)
        return [hit.sentence for hit in hits]


def source_words(base: BaseModel, rows: Sequence[Sequence[int]]) -> list[list[str]]:
    """Words of source sentences given as token ids: normalised by the base, so that all sentences are tokenised alike."""
    convert = base.tokenizer.convert_ids_to_tokens
    return [words(joined(convert([i for i in map(int, row) if i not in base.special_ids]))) for row in rows]
