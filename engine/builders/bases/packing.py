"""Sentence pairs packed into rows of equal length, so that little arithmetic is spent on padding.

A row holds several consecutive pairs, source pieces in one array and target pieces in another. Each token has the number of
its pair within the row (`segment`; 0 is padding) and its position within its sentence (`position`). A mask made from the
segments restricts attention to the pair, so that packing does not change the result (Raffel et al. 2020, "packing"; Krell et
al. 2021).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.builders.bases.vocabulary import EOS, Vocabulary

OPEN_ROWS = 24  # rows considered for each sentence; more rows pack more tightly but take longer


@dataclass(frozen=True)
class Packed:
    """A batch of B rows of L tokens per side."""

    source: Tensor  # (B, L) numbers of source pieces; each sentence begins with the tag of its target language
    source_segment: Tensor  # (B, L)
    source_position: Tensor  # (B, L)
    inputs: Tensor  # (B, L) the decoder's inputs: labels shifted right by one
    labels: Tensor  # (B, L)
    target_segment: Tensor  # (B, L)
    target_position: Tensor  # (B, L)

    def to(self, device: torch.device) -> Packed:
        return Packed(**{field.name: getattr(self, field.name).to(device, non_blocking=True) for field in dataclasses.fields(self)})

    @property
    def tokens(self) -> int:
        """Tokens of both sides, padding not counted."""
        return int((self.source_segment > 0).sum() + (self.target_segment > 0).sum())


@dataclass(frozen=True)
class Side:
    """The sentences of one language: all pieces in one array, each sentence with its end-of-sentence piece."""

    pieces: np.ndarray  # (tokens,)
    starts: np.ndarray  # (sentences + 1,)

    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)  # (sentences,)


@dataclass(frozen=True)
class Examples:
    """Encoded pairs; example 2i is pair i as given, 2i+1 its reverse."""

    sides: tuple[Side, Side]
    weights: np.ndarray  # (pairs,) how often a pair occurs in an epoch, on average
    vocabulary: Vocabulary
    too_long: int
    synthetic: np.ndarray | None = None  # (pairs,) 1 or 2 if the first or second side is machine translation, else 0
    file: np.ndarray | None = None  # (pairs,) number of the file that each pair is from

    def __len__(self) -> int:
        return 2 * len(self.weights)

    def lengths(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of tokens of the source (including its tag) and target of the examples."""
        lengths = [side.lengths()[chosen // 2] for side in self.sides]
        back = chosen % 2 == 1
        return np.where(back, lengths[1], lengths[0]) + 1, np.where(back, lengths[0], lengths[1])


def encode_pairs(pairs: Sequence[tuple[str, str]], weights: Sequence[float], vocabulary: Vocabulary, longest: int) -> Examples:
    """Encode all pairs with between 1 and `longest` pieces per side."""
    kind = np.uint16 if vocabulary.size < 2**16 else np.int32
    results: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    selected = []
    for begin in range(0, len(pairs), 20_000):
        part = pairs[begin : begin + 20_000]
        sides = [vocabulary.encode([pair[side] for pair in part]) for side in (0, 1)]
        for offset, encoded in enumerate(zip(*sides, strict=True)):
            if all(0 < len(pieces) <= longest for pieces in encoded):
                selected.append(weights[begin + offset])
                for side, pieces in zip(results, encoded, strict=True):
                    side.append(np.array([*pieces, EOS], dtype=kind))
    return Examples((_side(results[0], kind), _side(results[1], kind)), np.array(selected), vocabulary, len(pairs) - len(selected))


def _side(sentences: list[np.ndarray], kind: type) -> Side:
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    return Side(np.concatenate(sentences) if sentences else np.zeros(0, dtype=kind), starts)


def order_of_epoch(examples: Examples, seed: int, epoch: int) -> np.ndarray:
    """Numbers of the epoch's examples, shuffled: a weight of 2 includes a pair twice, 0.5 in every second epoch on average."""
    random = np.random.default_rng((seed, epoch))
    times = np.floor(examples.weights + random.random(len(examples.weights))).astype(np.int64)
    pairs = np.repeat(np.arange(len(times)), times)
    if examples.synthetic is None:
        order = np.concatenate([2 * pairs, 2 * pairs + 1])
    else:  # machine translation is only used as source, never as target
        synthetic = examples.synthetic[pairs]
        order = np.concatenate([2 * pairs[synthetic != 2], 2 * pairs[synthetic != 1] + 1])
    random.shuffle(order)
    return order


def pack(lengths: Sequence[tuple[int, int]], row_tokens: int) -> list[list[int]]:
    """Pack first-fit into rows of indices into `lengths` (source, target); each index once, no side above `row_tokens`."""
    rows: list[list[int]] = []
    still: list[tuple[int, int, list[int]]] = []  # room left in the source and in the target, the row
    for position, (a, b) in enumerate(lengths):
        for index, (room_a, room_b, row) in enumerate(still):
            if a <= room_a and b <= room_b:
                row.append(position)
                still[index] = (room_a - a, room_b - b, row)
                break
        else:
            if len(still) == OPEN_ROWS:
                fullest = min(range(OPEN_ROWS), key=lambda i: min(still[i][:2]))
                rows.append(still.pop(fullest)[2])
            still.append((row_tokens - a, row_tokens - b, [position]))
    return rows + [row for _, _, row in still]


def pack_examples(examples: Examples, chosen: np.ndarray, row_tokens: int) -> list[list[int]]:
    """Pack the chosen examples into rows; each occurs once."""
    lengths = list(zip(*(size.tolist() for size in examples.lengths(chosen)), strict=True))
    return [[int(chosen[position]) for position in row] for row in pack(lengths, row_tokens)]


def packed_batches(
    examples: Examples, *, rows: int, row_tokens: int, seed: int, epoch: int, skip: int = 0, keep_last: bool = False
) -> Iterator[Packed]:
    """The batches of an epoch, each of `rows` rows; the first `skip` are skipped. The last, incomplete batch is dropped unless
    it is the only one or `keep_last` is set.
    """
    order = order_of_epoch(examples, seed, epoch)
    window = max(4096, 24 * rows)  # examples packed together: a few dozen batches
    batches = 0
    waiting: list[list[int]] = []
    for begin in range(0, len(order), window):
        waiting += pack_examples(examples, order[begin : begin + window], row_tokens)
        np.random.default_rng((seed, epoch, begin)).shuffle(waiting)
        while len(waiting) >= rows:
            chosen, waiting = waiting[:rows], waiting[rows:]
            batches += 1
            if batches > skip:
                yield assemble(examples, chosen, row_tokens)
    if waiting and (keep_last or not batches):
        yield assemble(examples, waiting, row_tokens)


def assemble(examples: Examples, rows: Sequence[Sequence[int]], row_tokens: int) -> Packed:
    """The batch with these examples in its rows."""
    pad, tags = examples.vocabulary.pad, examples.vocabulary.tags
    shape = (len(rows), row_tokens)
    chosen = np.concatenate([np.asarray(row) for row in rows])  # (N,) examples, row by row
    row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])  # (N,)
    number = np.concatenate([np.arange(1, len(row) + 1) for row in rows])  # (N,) number of the example within its row
    back = chosen % 2 == 1  # (N,)
    lengths = examples.lengths(chosen)
    arrays = {}
    for name, size in zip(("source", "target"), lengths, strict=True):
        start = _starts(size, row_of, row_tokens)  # (N,) first of the B*L positions of each example
        inner = _ranges(size)  # (tokens,) position of a token within its sentence
        location = np.repeat(start, size) + inner  # (tokens,)
        words = np.full(shape[0] * shape[1], pad, dtype=np.int64)
        segment, position = np.zeros_like(words), np.zeros_like(words)
        segment[location] = np.repeat(number, size)
        position[location] = inner
        tagged = name == "source"
        for side in (0, 1):
            on_side = back == (side == 0) if not tagged else back == (side == 1)  # (N,) examples whose pieces are on this side
            count = size[on_side] - tagged
            begin = examples.sides[side].starts[chosen[on_side] // 2]
            words[np.repeat(start[on_side] + tagged, count) + _ranges(count)] = examples.sides[side].pieces[
                np.repeat(begin, count) + _ranges(count)
            ]
        if tagged:
            words[start] = np.where(back, tags[examples.vocabulary.source], tags[examples.vocabulary.target])
        else:
            inputs = np.full_like(words, pad)  # a sentence's first input is Marian's start token, the padding token
            later = location[inner > 0]
            inputs[later] = words[later - 1]
            arrays["inputs"] = inputs
        arrays[name], arrays[f"{name}_segment"], arrays[f"{name}_position"] = words, segment, position
    arrays["labels"] = arrays.pop("target")
    return Packed(**{key: torch.from_numpy(value.reshape(shape)) for key, value in arrays.items()})


def _starts(sizes: np.ndarray, row_of: np.ndarray, row_tokens: int) -> np.ndarray:
    """The first of the B*L positions of each example; rows are filled from the left."""
    before = np.cumsum(sizes) - sizes  # tokens of all earlier examples
    first = np.concatenate([[True], row_of[1:] != row_of[:-1]])
    return row_of * row_tokens + before - before[np.flatnonzero(first)][np.cumsum(first) - 1]


def _ranges(sizes: np.ndarray) -> np.ndarray:
    """0, 1, …, size-1 for each size, concatenated."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
