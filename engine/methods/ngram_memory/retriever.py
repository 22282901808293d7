"""Which pairs of the set are found for a sentence, by the way that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError
from engine.methods.ngram_memory.config import NgramMemoryConfig
from engine.methods.samples import SentencePair
from engine.progress import Progress
from engine.retrieval.own import OwnText

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel

__all__ = ["VECTORS", "Retriever", "load_vectors", "record_vectors"]

VECTORS = "memory.safetensors"


def record_vectors(
    base: BaseModel, pairs: Sequence[SentencePair], widths: Sequence[int], path: Path, progress: Progress
) -> None:
    """Write the vectors of all n-grams of the sources: `ngrams.{width}` (G, d) in half precision, `lengths` (N,)."""
    import torch
    from safetensors.torch import save_file

    from engine.files import replacing
    from engine.retrieval.dense import set_vectors

    vectors, lengths = set_vectors(base, [pair.source for pair in pairs], widths, progress)
    tensors = {f"ngrams.{width}": torch.from_numpy(found).half() for width, found in vectors.items()}
    with replacing(path, "the vectors") as temporary:
        save_file({**tensors, "lengths": torch.from_numpy(lengths)}, temporary)


def load_vectors(path: Path, base: BaseModel, pairs: int, widths: Sequence[int]) -> tuple[dict[int, Any], Any]:
    """What `record_vectors` wrote. Raises BundleError when it is missing or does not fit the pairs."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from engine.retrieval.ngrams import all_ngrams

    if not path.exists():
        raise BundleError(f"it has no {path.name}, in which the method finds n-grams. Get the bundle again.")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise BundleError(f"{path.name} is damaged ({error}). Get the bundle again.") from None
    lengths = tensors.pop("lengths", None)
    fits = lengths is not None and lengths.shape == (pairs,) and not lengths.is_floating_point()
    fits = fits and bool(((lengths >= 0) & (lengths <= base.max_tokens)).all())
    fits = fits and set(tensors) == {f"ngrams.{width}" for width in widths}
    if fits and lengths is not None:
        fits = all(
            tuple(tensors[f"ngrams.{width}"].shape) == (len(all_ngrams(lengths.numpy(), width)[0]), base.d_model)
            for width in widths
        )
    if not fits or lengths is None:
        raise BundleError(f"{path.name} does not fit the sentence pairs beside it. Get the bundle again.")
    return {width: tensors[f"ngrams.{width}"].float().numpy() for width in widths}, lengths.numpy()


class Retriever:
    """Finds pairs by their sources; knows which pairs are a sentence's own."""

    def __init__(
        self, base: BaseModel, pairs: Sequence[SentencePair], config: NgramMemoryConfig, vectors: Path | None
    ) -> None:
        from engine.retrieval.dense import DenseNgrams
        from engine.retrieval.neighbours import IdfNgrams, IdfSentences
        from engine.retrieval.words import source_words

        self.config, self.pairs = config, pairs
        self.dense = config.retrieval == "dense_ngram"
        self._own_cache: dict[tuple[str, str], list[int]] = {}
        if self.dense:
            found, lengths = load_vectors(vectors or Path(VECTORS), base, len(pairs), sorted(set(config.widths)))
            self.engine: Any = DenseNgrams(found, lengths, depth=config.search_depth, widths=config.widths)
            return
        sentences = source_words(base, base.encode([pair.source for pair in pairs]))
        whole = config.retrieval == "idf_sentence"
        self.engine = IdfSentences(sentences) if whole else IdfNgrams(sentences, config.widths)

    @cached_property
    def own(self) -> OwnText:
        """Needed in training alone."""
        return OwnText([pair.target for pair in self.pairs], [pair.source for pair in self.pairs])

    def find(
        self, base: BaseModel, ids: Sequence[int], states: torch.Tensor, own: SentencePair | None = None,
    ) -> list[int]:  # fmt: skip
        """Places of the pairs found for a source sentence given as ids (S,) and frozen states (S, d), the best first.

        `own` says that the sentence is being learnt from: neither it nor the same text but for trifles is found, and what
        was found is kept, since the same pairs come again in every epoch.
        """
        if own is None:
            return self._search(base, ids, states, self.config.neighbours_translating, set())
        name = own.source, own.target
        if name not in self._own_cache:
            shut = self.own.of(own.source, own.target)
            self._own_cache[name] = self._search(base, ids, states, self.config.neighbours, shut)
        return self._own_cache[name]

    def _search(
        self, base: BaseModel, ids: Sequence[int], states: torch.Tensor, most: int | None, shut: set[int]
    ) -> list[int]:
        from engine.retrieval.dense import content
        from engine.retrieval.words import source_words

        if self.dense:
            query: Any = content(base, ids, states)  # (T, d)
        else:
            (query,) = source_words(base, [ids])
        if self.config.retrieval == "idf_sentence" and most is None:
            most = self.config.neighbours
        return [hit.sentence for hit in self.engine.neighbours(query, most, shut)]
