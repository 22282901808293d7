"""Retrieval by sentence: exact scores for the rows of the few samples whose sources share the rarest words of the input.

For each input sentence, S samples are shortlisted once. At each step the state q of a hypothesis is compared with the keys k of
their rows, after subtracting the memory's mean m from both:

    c_i = cos(q - m, k_i - m)        p_copy(y) = Σ_{i: y_i = y} softmax(c_i / T)
    g = λ sigmoid(10 (max_i c_i - θ))        p(y) = (1 - g) p_MT(y) + g p_copy(y)

so that little is copied if the samples contain nothing similar. By default, a learned gate (gate.py) replaces T and θ. A row is
refused if its token is part of a number or name that is not in the input, if it would continue a different word than in its
sentence, or if it would be copied again (history.py).
"""

from __future__ import annotations

import contextlib
import copy
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.base import BaseModel
from engine.corpora.tokenize import WIDE, joined
from engine.methods.knn.datastore import Datastore
from engine.methods.knn.forced_decoding import StateCapture, output_bias
from engine.methods.knn.gate import NO_ROW, GateInputs, NeighbourGate
from engine.methods.knn.history import Steps, is_repeated, repeats
from engine.methods.knn.interpolate import mix
from engine.methods.knn.options import MOST_WEIGHT, KnnOptions

SHARPNESS = 10.0  # of the gate
CANDIDATES = 16  # best rows that are used per step
ANY = -1  # as required previous token: any token
NO_TOKEN = -2  # as previous token: the row is first in its sentence
NONE = (0, -1, 0, ANY, NO_TOKEN - 1, NO_TOKEN - 1)  # `columns` of a missing row, whose cosine is `NO_ROW`
LITTLE = 1e-2  # total mass up to which a position is left unchanged


def copied(cosines: torch.Tensor, temperature: float, threshold: float, weight: float, strength: float = 1.0) -> torch.Tensor:
    """The probability mass (..., k) of each row, given cosines (..., k) that are `NO_ROW` for missing or refused rows."""
    best = cosines.amax(-1, keepdim=True)  # (..., 1)
    gate = torch.sigmoid(SHARPNESS * (best - threshold)) * (best > NO_ROW)  # (..., 1)
    share = torch.softmax(cosines.masked_fill(cosines <= NO_ROW, -1e4) / temperature, -1)  # (..., k)
    return (strength * weight * gate).clamp(max=MOST_WEIGHT) * share  # (..., k)


@dataclass(frozen=True)
class Shortlist:
    """The R rows of the S samples that one sentence of the batch may copy from."""

    keys: torch.Tensor  # (R, d), minus the mean
    scale: torch.Tensor  # (R,) factor that turns a product with the key into a cosine
    columns: torch.Tensor  # (R, 6) token, datastore row, rank of its sentence, required previous token, the two previous tokens
    coverage: torch.Tensor  # (R,) share of the input's IDF mass that the row's sentence covers
    known_share: float  # the share that any sample covers


@dataclass(frozen=True)
class SentenceNeighbours:
    """The best k rows for each query, padded with `NONE`."""

    cosines: torch.Tensor  # (A, n, k)
    coverage: torch.Tensor  # (A, n, k)
    columns: torch.Tensor  # (A, n, k, 6)


def inner_pieces(base: BaseModel) -> torch.Tensor:
    """Mask (V,) of the subwords that continue a word, in scripts that separate words by spaces."""
    pieces = base.tokenizer.convert_ids_to_tokens(range(int(base.model.config.vocab_size)))
    return torch.tensor([bool(piece) and piece[0].isalnum() and not re.match(f"[{WIDE}]", piece) for piece in pieces])  # (V,)


def splits_word(before: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """Mask (r, n, k) of the candidates that would continue a different word than in their sentence, after `written` (r, n)."""
    return (before != ANY) & (before != written[..., None])  # (r, n, k)


def context(before: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """How many of the two tokens before each row (..., k, 2) match the last two of `written` (..., 2); the last one is first."""
    last = before[..., 0] == written[..., None, 0]  # (..., k)
    return last.byte() + (last & (before[..., 1] == written[..., None, 1]))  # (..., k)


class SentenceReader:
    """Reads rows of the datastore for a batch of sentences; call `set_source` before each batch."""

    def __init__(self, datastore: Datastore, options: KnnOptions, device: Any, gate: NeighbourGate | None = None) -> None:
        assert datastore.sources is not None
        assert datastore.keys is not None
        self.datastore, self.sources, self.options = datastore, datastore.sources, options
        self.device = device
        self.gate = gate.to(device) if gate is not None else None
        assert self.sources.mean is not None
        self.mean = self.sources.mean.to(device)  # (d,)
        self.inner: Any = None  # (V,) whether a subword continues a word
        self.rows: list[Shortlist] = []  # per sentence of the batch
        self.columns: torch.Tensor  # (1 + ΣR, 6) of all these rows, preceded by `NONE`
        self.coverage: torch.Tensor  # (1 + ΣR,)
        self.starts: torch.Tensor  # (B,) index of each sentence's first row in `columns`
        self.before_rows: torch.Tensor  # (B, R, 2) the two tokens before the rows of each sentence, padded; for the gate
        self.covered: torch.Tensor  # (B, R) their coverage, padded
        self.begins: torch.Tensor  # (b,) special tokens, such as those with which decoding starts
        self.allowed: torch.Tensor  # (B,) how often the same row or trigram may be copied

    def with_settings(self, options: KnnOptions, gate: NeighbourGate | None = None) -> SentenceReader:
        other = copy.copy(self)
        other.options, other.gate = options, gate.to(self.device) if gate is not None else None
        return other

    # -- a batch's shortlists

    def set_source(self, base: BaseModel, rows: Sequence[Sequence[int]], blocked: Sequence[Sequence[int]] | None = None) -> None:
        """Make shortlists for the sources (token ids without padding); `blocked` sentences of each are not retrieved."""
        skip = base.special_ids
        plain = [[i for i in row if i not in skip] for row in rows]
        if self.inner is None:
            self.inner = inner_pieces(base)  # (V,)
        self.begins = torch.tensor(sorted(skip), device=self.device)  # (b,)
        top_k = self.options.shortlist or 1
        texts = [joined(base.tokenizer.convert_ids_to_tokens(row)) for row in plain]
        self.rows = [
            self.rows_of(*self.sources.shortlist(row, top_k, blocked[i] if blocked else ()), texts[i])
            for i, row in enumerate(plain)
        ]
        self.columns = torch.cat([torch.tensor([NONE], device=self.device), *(shortlist.columns for shortlist in self.rows)])
        self.coverage = torch.cat([self.mean.new_zeros(1), *(shortlist.coverage for shortlist in self.rows)])
        counts = torch.tensor([1, *(len(shortlist.columns) for shortlist in self.rows)], device=self.device)  # (1 + B,)
        self.starts = counts.cumsum(0)[:-1]  # (B,)
        if self.gate is not None:
            pad = torch.nn.utils.rnn.pad_sequence
            self.before_rows = pad([shortlist.columns[:, 4:] for shortlist in self.rows], batch_first=True)  # (B, R, 2)
            self.covered = pad([shortlist.coverage for shortlist in self.rows], batch_first=True)  # (B, R)
        self.allowed = torch.tensor([repeats(row) for row in plain], device=self.device)  # (B,)

    def rows_of(self, sentences: NDArray[np.int64], coverage: NDArray[np.float32], known_share: float, text: str) -> Shortlist:
        """The rows of the samples `sentences` (S,) that may be copied into a translation of the text."""
        assert self.datastore.keys is not None
        entries, ranks = self.sources.rows_of(sentences, text)  # (R,) each
        keys = self.datastore.keys[entries].to(self.device, torch.float32).sub_(self.mean)  # (R, d)
        tokens = self.datastore.tokens[entries].long()  # (R,)
        last, one_before = self.before(entries, 1), self.before(entries, 2)  # (R,) each
        needed = torch.where(self.inner[tokens], last, torch.full_like(last, ANY))  # (R,)
        columns = torch.stack([tokens, entries, ranks, needed, last, one_before], -1).to(self.device)  # (R, 6)
        shares = torch.from_numpy(coverage)[ranks].to(self.device)  # (R,)
        return Shortlist(keys, 1 / keys.norm(dim=-1).clamp(min=1e-6), columns, shares, known_share)

    def before(self, entries: torch.Tensor, count: int) -> torch.Tensor:
        """The tokens (R,) that are `count` positions before the entries (R,) in their sentences, or `NO_TOKEN`."""
        earlier = (entries - count).clamp(min=0)  # (R,)
        whose = self.datastore.sentences
        tokens = self.datastore.tokens[earlier].long()  # (R,)
        return tokens.masked_fill((whose[earlier] != whose[entries]) | (entries < count), NO_TOKEN)  # (R,)

    def nearest(
        self, queries: torch.Tensor, sentences: Sequence[int], k: int, written: torch.Tensor | None = None
    ) -> SentenceNeighbours:
        """The best k rows for queries (A, n, d) of A sentences of the batch, in descending order: by the gate's scores if there is
        a gate and `written` (A, n, 2), the last two tokens before each prediction, is given; otherwise by cosine.
        """
        normalised = torch.nn.functional.normalize(queries.float() - self.mean, dim=-1)  # (A, n, d)
        rows = [self.rows[i] for i in sentences]
        wide = max(len(shortlist.scale) for shortlist in rows)
        count = min(k, wide)
        each = normalised.new_full((*normalised.shape[:2], wide), NO_ROW)  # (A, n, R) cosines
        for i, shortlist in enumerate(rows):
            # With the keys on the left they are read only once, which is twice as fast.
            torch.mul((shortlist.keys @ normalised[i].T).T, shortlist.scale, out=each[i, :, : len(shortlist.scale)])
        which = torch.tensor(list(sentences), device=each.device)  # (A,)
        if self.gate is not None and written is not None:
            fits = context(self.before_rows[which, None, :wide], written)  # (A, n, R)
            result = self.gate.scores(each, self.covered[which, None, :wide], fits)  # (A, n, R)
            best = result.masked_fill_(each == NO_ROW, -math.inf).topk(count).indices  # (A, n, k')
        else:
            best = each.topk(count).indices  # (A, n, k')
        cosines = each.gather(-1, best)  # (A, n, k')
        index = (self.starts[which, None, None] + best) * (cosines > NO_ROW)  # (A, n, k')
        if count < k:
            cosines = torch.nn.functional.pad(cosines, (0, k - count), value=NO_ROW)  # (A, n, k)
            index = torch.nn.functional.pad(index, (0, k - count))  # (A, n, k)
        return SentenceNeighbours(cosines, self.coverage[index], self.columns[index])

    def known_share(self, sentences: torch.Tensor) -> torch.Tensor:
        """The share of the IDF mass of each sentence of the batch that any sample covers; `sentences` are indices of any shape."""
        return sentences.new_tensor([rows.known_share for rows in self.rows], dtype=self.mean.dtype)[sentences]

    # -- at each step

    @contextlib.contextmanager
    def attach(self, base: BaseModel, strength: float, recorded: dict[str, torch.Tensor] | None = None) -> Iterator[None]:
        """Hook the base's output layer for the duration of the block."""
        head = base.model.get_output_embeddings()
        bias = output_bias(base)
        with StateCapture(base, self.options.keys) as tap, Steps(base) as steps:

            def mixed(module: Any, args: Any, logits: torch.Tensor) -> torch.Tensor:
                return self.interpolate(tap.states, logits, bias, strength, steps, recorded)

            with head.register_forward_hook(mixed):
                yield

    def interpolate(
        self, states: torch.Tensor, logits: torch.Tensor, bias: torch.Tensor | None, strength: float, steps: Steps,
        recorded: dict[str, torch.Tensor] | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """The logits (…, V) of the mixture at positions with states (…, d)."""
        queries, real = steps.laid_out(states.detach())  # (r, n, d), (r, n) or None
        sentences = steps.sentences(len(self.rows))  # (r,)
        once = sentences[:: steps.hypotheses(sentences)].tolist()  # A of them
        written = steps.written(self.begins, NO_TOKEN)  # (r, n, 2)
        result = self.nearest(
            queries.reshape(len(once), -1, queries.shape[-1]), once,
            min(self.options.k or CANDIDATES, len(self.datastore)), written.reshape(len(once), -1, 2),
        )  # (A, m * n, k)  # fmt: skip
        cosines = result.cosines.view(*queries.shape[:2], -1)  # (r, n, k)
        columns = result.columns.view(*cosines.shape, len(NONE))  # (r, n, k, 6)
        tokens, entries = columns[..., 0], columns[..., 1]  # (r, n, k) each
        history = steps.history(sentences, tokens, entries)
        refused = is_repeated(history, tokens, entries, self.allowed[sentences])  # (r, n, k)
        refused |= splits_word(columns[..., 3], steps.ids)  # (r, n, k)
        cosines = cosines.masked_fill(refused, NO_ROW)  # (r, n, k)

        def of_logits(value: torch.Tensor) -> torch.Tensor:
            """Select from values (r, n, ...) those at positions with logits: (R, ...)."""
            return value[real] if real is not None else value.flatten(0, 1)

        flat = logits.view(-1, logits.shape[-1])  # (R, V)
        full_logits = flat.float() if bias is None else flat.float() + bias  # (R, V)
        top = full_logits.amax(-1, keepdim=True)  # (R, 1)
        lse = top - torch.log_softmax(full_logits, -1).amax(-1, keepdim=True)  # (R, 1); faster than logsumexp
        tokens, cosines = of_logits(tokens), of_logits(cosines)  # (R, k) each
        if self.gate is None:
            mass = copied(
                cosines, self.options.temperature or 1.0, self.options.threshold or 0.0,
                MOST_WEIGHT if self.options.weight is None else self.options.weight, strength,
            )  # (R, k)  # fmt: skip
        else:
            rows = GateInputs(
                cosines, of_logits(result.coverage.view(*queries.shape[:2], -1)), of_logits(context(columns[..., 4:], written)),
                of_logits(self.known_share(sentences)[:, None].expand(queries.shape[:2])),
                (top - lse)[:, 0].detach(),
            )  # fmt: skip
            weight = MOST_WEIGHT if self.options.weight is None else self.options.weight
            mass = self.gate.masses(rows, weight, strength)  # (R, k)
        if recorded is not None:
            recorded |= {"rows": of_logits(entries), "mass": mass, "distances": 1 - cosines}
        asking = (mass.sum(-1) > LITTLE).nonzero()[:, 0]  # (r',)
        if not len(asking):
            return logits
        if 2 * len(asking) > len(flat):
            return mix(flat, tokens, mass, bias, lse).view_as(logits)
        part = mix(flat[asking], tokens[asking], mass[asking], bias, lse[asking])  # (r', V)
        put = flat.index_copy if flat.requires_grad else flat.index_copy_
        return put(0, asking, part).view_as(logits)
