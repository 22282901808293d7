"""The memory that is read by sentence: one row per target token of the samples, recorded within its sentence.

The key of a row is the state of a decoder layer at the position that predicts its token, where decoding makes its query too.
The value is the token. To save space, a key is projected to the r directions in which the samples' states vary most at its
location:

    k = B (s - m)        B (r, d): principal axes, each divided by the fourth root of its variance; m (d,): the mean state

memory.safetensors
    tokens                    (R,)    int32     the target tokens of all sentences, each with its end of sentence
    {layer}.{place}.keys      (R, r)  int8      for each location that reads the memory
    {layer}.{place}.exponents (R,)    int8      of the power of two that scales a key; without them keys are float16
    {layer}.{place}.basis     (r, d)  float32
    {layer}.{place}.mean      (d,)    float32
memory.sources.safetensors              which sentences share the rarest words of an input (source_index.py)
memory.jsonl                            {"source", "target"} per sentence; may be omitted for confidentiality
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.base import BaseModel
from engine.base.onednn import fast_products
from engine.core.eight_bits import EightBits, to_eight_bits
from engine.core.progress import Progress
from engine.core.tensor_files import save_tensors
from engine.corpora.tokenize import joined
from engine.corpora.types import SentencePair
from engine.decoding.translate import length_batches
from engine.errors import BundleError, CorpusError
from engine.memory.retrieval_set import load_sentences, save_sentences
from engine.memory.source_index import OF_MEMORY, Sources, row_names, shown_pieces

FILE, TEXTS = "memory.safetensors", "memory.jsonl"
SURVEYED = 20_000  # rows from which the axes of a location are computed
MOST_ROWS = 1024  # read for an input sentence, at most

Location = tuple[int, str]  # a decoder layer and the name of one of its attentions


@dataclass(frozen=True)
class Axes:
    """The mean of a location's states and the directions in which they vary most."""

    mean: torch.Tensor  # (d,)
    basis: torch.Tensor  # (r, d)

    @classmethod
    def of(cls, states: torch.Tensor, size: int) -> Axes:
        """The axes of states (N, d)."""
        mean = states.mean(0)  # (d,)
        centred = states - mean  # (N, d)
        variances, axes = torch.linalg.eigh(centred.T @ centred / len(states))  # (d,), (d, d)
        variances, axes = variances[-size:].clamp(min=1e-6), axes[:, -size:]  # (r,), (d, r)
        return cls(mean, (axes * variances**-0.25).T.contiguous())

    def fit(self, d: int) -> bool:
        """Whether their shapes suit states of size d and all values are finite."""
        shaped = self.basis.dim() == 2 and self.basis.shape[1] == d and self.mean.shape == (d,)
        return shaped and all(bool(tensor.isfinite().all()) for tensor in (self.basis, self.mean))

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Keys (..., r) of states (..., d)."""
        return (states - self.mean) @ self.basis.T  # (..., r)


class Keys(EightBits):
    """R keys of size r; in bundles of early versions `values` are float16 and exponents 0."""

    def fit(self, rows: int, axes: Axes, d: int) -> bool:
        """Whether there are `rows` keys in these axes of states of size d."""
        kinds = self.values.dtype in (torch.int8, torch.float16), self.exponents.dtype == torch.int8
        shaped = self.values.shape == (rows, len(axes.basis)) and self.exponents.shape == (rows,)
        return all(kinds) and shaped and axes.fit(d)


@dataclass(frozen=True)
class Shortlist:
    """The rows that each of B sentences may read: those of samples that share its rarest words."""

    rows: torch.Tensor  # (B, R) into the memory; 0 for padding
    real: torch.Tensor  # (B, R) whether there is a row
    coverage: torch.Tensor  # (B, R) share of the input's IDF mass that the row's sentence has, 0 to 1
    known_share: torch.Tensor  # (B,) share of it that any sample has

    def shifted(self, offset: int) -> Shortlist:
        """The same, with each sentence's shortlist replaced by that of the sentence `offset` positions before it."""
        return Shortlist(*(value.roll(offset, 0) for value in (self.rows, self.real, self.coverage, self.known_share)))


@dataclass
class SentenceMemory:
    """R rows of N sentences."""

    tokens: torch.Tensor  # (R,) int32
    keys: dict[Location, Keys]  # of R rows each
    axes: dict[Location, Axes]
    sources: Sources
    sentences: list[SentencePair] = field(default_factory=list)  # empty if omitted

    def __len__(self) -> int:
        return len(self.tokens)

    def shortlist(
        self, base: BaseModel, inputs: Sequence[Sequence[int]], top_k: int, blocked: Sequence[Collection[int]] = ()
    ) -> Shortlist:
        """The rows for source token ids, one list per sentence, from `top_k` samples each, without those that are `blocked`."""
        plain = [[i for i in row if i not in base.special_ids] for row in inputs]
        parts = []
        for i, row in enumerate(plain):
            numbers, coverage, known_share = self.sources.shortlist(row, top_k, blocked[i] if blocked else ())
            text = joined(base.tokenizer.convert_ids_to_tokens(row))
            rows, ranks = (part[:MOST_ROWS] for part in self.sources.rows_of(numbers, text))  # (R,) each
            parts.append((rows, torch.from_numpy(coverage)[ranks], known_share))
        shape = len(parts), max(1, *(len(rows) for rows, _, _ in parts))
        indices, real = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)  # (B, R) each
        covered = torch.zeros(shape)  # (B, R)
        for i, (rows, shares, _) in enumerate(parts):
            indices[i, : len(rows)], real[i, : len(rows)], covered[i, : len(rows)] = rows, True, shares
        shares = torch.tensor([share for _, _, share in parts])  # (B,)
        return Shortlist(*(value.to(base.device) for value in (indices, real, covered, shares)))

    def sentence_of(self, row: int) -> int:
        """The index of the sentence that a row belongs to."""
        return int(np.searchsorted(self.sources.starts, row, side="right")) - 1

    def changed(self, **parts: Any) -> SentenceMemory:
        return replace(self, **parts)

    # -- files

    def save(self, folder: Path) -> dict[str, Path]:
        """Write the files; returns them by name. Raises StorageError."""
        tensors = {"tokens": self.tokens}
        for (layer, attention), keys in self.keys.items():
            axes, name = self.axes[layer, attention], f"{layer}.{attention}"
            tensors |= {f"{name}.keys": keys.values, f"{name}.exponents": keys.exponents}
            tensors |= {f"{name}.basis": axes.basis, f"{name}.mean": axes.mean}
        save_tensors(folder / FILE, tensors, "the memory")
        self.sources.save(folder, OF_MEMORY)
        save_sentences(self.sentences, folder / TEXTS)
        return {name: folder / name for name in (FILE, OF_MEMORY, TEXTS)}

    @classmethod
    def open(cls, folder: Path, base: BaseModel) -> SentenceMemory:
        """Map the files of a folder. Raises BundleError unless shapes, types and ids fit the base."""
        try:
            data = load_file(folder / FILE)
        except (SafetensorError, OSError):
            raise BundleError("{file} is missing or damaged. Get a new copy of the bundle.", file=FILE) from None
        tokens = data.pop("tokens", torch.zeros(0))  # (R,)
        keys: dict[Location, Keys] = {}
        axes: dict[Location, Axes] = {}
        try:
            for name in sorted(key.removesuffix(".keys") for key in data if key.endswith(".keys")):
                layer, _, attention = name.partition(".")
                values = data.pop(f"{name}.keys")  # (R, r)
                exponents = data.pop(f"{name}.exponents", torch.zeros(len(values), dtype=torch.int8))  # (R,)
                keys[int(layer), attention] = Keys(values, exponents)
                axes[int(layer), attention] = Axes(data.pop(f"{name}.mean"), data.pop(f"{name}.basis"))
        except (LookupError, ValueError):
            raise BundleError("{file} lacks a part of its keys. Get a new copy of the bundle.", file=FILE) from None
        d = base.d_model
        fits = not data and tokens.dim() == 1 and tokens.dtype == torch.int32 and len(tokens) > 0
        fits = fits and all(location_keys.fit(len(tokens), axes[location], d) for location, location_keys in keys.items())
        if not fits or int(tokens.min()) < 0 or int(tokens.max()) >= int(base.model.config.vocab_size):
            raise BundleError("{file} does not fit the base. Get a new copy of the bundle.", file=FILE)
        sources = Sources.open(folder, len(tokens), name=OF_MEMORY)
        texts = load_sentences(folder / TEXTS) if (folder / TEXTS).exists() else []
        if texts and len(texts) != len(sources.starts) - 1:
            raise BundleError("{file} does not fit the base. Get a new copy of the bundle.", file=TEXTS)
        return cls(tokens, keys, axes, sources, texts)


def record_sentences(
    base: BaseModel,
    pairs: Sequence[SentencePair],
    locations: Sequence[Location],
    size: int,
    progress: Progress | None = None,
    axes: Mapping[Location, Axes] | None = None,
) -> SentenceMemory:
    """One teacher-forced pass of the frozen base over the pairs, with keys of `size` numbers; existing `axes` are reused.

    Pairs without a source, or longer than the base's maximum length, are skipped. Raises CorpusError if none is left.
    """
    progress = progress or Progress()
    sentences = [pair for pair in pairs if pair.source and pair.target]
    inputs, labels = (base.encode([pair.source for pair in sentences]), base.encode_target([pair.target for pair in sentences]))
    selected = [i for i in range(len(sentences)) if max(len(inputs[i]), len(labels[i])) <= base.max_tokens]
    sentences = [sentences[i] for i in selected]
    inputs, labels = ([part[i] for i in selected] for part in (inputs, labels))
    if not sentences:
        raise CorpusError("There is no sentence pair to store in the memory. Add sentences to the samples.")
    starts = np.concatenate([[0], np.cumsum([len(row) for row in labels])]).astype(np.int64)
    if axes is None:
        sample = range(0, len(sentences), max(1, int(starts[-1]) // SURVEYED))
        states: dict[Location, list[torch.Tensor]] = {location: [] for location in locations}
        for _, batch_states in forced_states(base, [inputs[i] for i in sample], [labels[i] for i in sample], locations):
            for location, rows in batch_states.items():
                states[location].append(rows)
        axes = {location: Axes.of(torch.cat(rows), min(size, base.d_model)) for location, rows in states.items()}
    total, done = int(starts[-1]), 0
    keys = {
        location: Keys(torch.empty(total, len(axes[location].basis), dtype=torch.int8), torch.empty(total, dtype=torch.int8))
        for location in locations
    }
    for numbers, batch_states in forced_states(base, inputs, labels, locations):
        rows = torch.cat([torch.arange(starts[i], starts[i + 1]) for i in numbers])  # (M,)
        for location, vectors in batch_states.items():
            keys[location].values[rows], keys[location].exponents[rows] = to_eight_bits(axes[location](vectors))
        done += len(numbers)
        progress.advance(done, len(sentences))
    tokens = torch.tensor([token for row in labels for token in row], dtype=torch.int32)  # (R,)
    return SentenceMemory(tokens, keys, dict(axes), index_of(base, sentences, inputs, labels, starts), sentences)


def index_of(
    base: BaseModel, sentences: Sequence[SentencePair], inputs: list[list[int]], labels: list[list[int]], starts: Any
) -> Sources:
    """The index of these sentences, whose rows begin at `starts` (N + 1,)."""
    token_ids = sorted({token for row in labels for token in row})
    pieces = dict(zip(token_ids, shown_pieces(base, token_ids), strict=True))
    written = ([pieces[token] for token in row] for row in labels)
    names = torch.tensor(row_names(written, (pair.source for pair in sentences)), dtype=torch.int32)  # (R,)
    plain = [[i for i in row if i not in base.special_ids] for row in inputs]
    return Sources.build(plain, starts, names)


def forced_states(
    base: BaseModel, inputs: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], locations: Sequence[Location]
) -> Iterator[tuple[list[int], dict[Location, torch.Tensor]]]:
    """For each batch: the sentences' indices, and the states (M, d) of their M target tokens at each location, in sentence order.

    The state is the query of a reader (memory_adapter/method.py: `of_reader`).
    """
    recorded: dict[Location, torch.Tensor] = {}
    lengths = [max(len(a), len(b)) for a, b in zip(inputs, labels, strict=True)]
    with base.lock, fast_products(base), torch.no_grad(), watched(base, locations, recorded):
        for numbers in length_batches(lengths, base.batch_tokens):
            sources, targets = (base.pad_batch([rows[i] for i in numbers]) for rows in (inputs, labels))  # (B, S), (B, T)
            base.model.get_decoder()(
                input_ids=base.shift_right(targets), encoder_hidden_states=base.encoder_states(sources),
                encoder_attention_mask=base.mask(sources), use_cache=False,
            )  # fmt: skip
            real = torch.zeros_like(targets, dtype=torch.bool)  # (B, T)
            for row, i in zip(real, numbers, strict=True):
                row[: len(labels[i])] = True
            yield list(numbers), {location: states[real].float().cpu() for location, states in recorded.items()}


@contextlib.contextmanager
def watched(base: BaseModel, locations: Sequence[Location], recorded: dict[Location, torch.Tensor]) -> Iterator[None]:
    """Store the states (B, T, d) at these locations in `recorded` whenever the decoder runs within the block."""

    def watch(location: Location) -> Any:
        def hook(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            asks = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (B, T, d)
            recorded[location] = output[0] if location[1] == "self_attn" else asks

        return hook

    with contextlib.ExitStack() as stack:
        for layer, name in locations:
            attention = getattr(base.decoder_layers[layer], name)
            stack.callback(attention.register_forward_hook(watch((layer, name)), with_kwargs=True).remove)
        yield
