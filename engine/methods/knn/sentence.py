"""Retrieval by sentence: rows of the few samples whose sources share the rarest words of the input, scored exactly.

Of each input sentence S samples are shortlisted once. At each step the state q of a hypothesis is compared with the states
k of their rows, both less the memory's mean m:

    c_i = cos(q - m, k_i - m)        p_copy(y) = Σ_{i: y_i = y} softmax(c_i / T)
    g = λ sigmoid(10 (max_i c_i - θ))        p(y) = (1 - g) p_MT(y) + g p_copy(y)

so that little is copied where nothing in the samples is alike; a learned gate (gate.py) takes the place of T and θ. A row
brings nothing where its token is a part of a number or name that the input lacks, where it goes on with another word than in
its sentence, or where it would be copied again (history.py).
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
from engine.methods.knn.history import Steps, again, repeats
from engine.methods.knn.interpolate import mix
from engine.methods.knn.options import MOST_WEIGHT, KnnOptions

SHARPNESS = 10.0  # of the gate
CANDIDATES = 16  # rows that are read at a step, the best
ANY = -1  # where any token may stand before
NO_TOKEN = -2  # before the first of a sentence
NONE = (0, -1, 0, ANY, NO_TOKEN - 1, NO_TOKEN - 1)  # where there is no row; its cosine is `NO_ROW`
LITTLE = 1e-2  # a share of the copy below which a position is left as it is


def copied(
    cosines: torch.Tensor, temperature: float, threshold: float, weight: float, strength: float = 1.0
) -> torch.Tensor:
    """The probability (..., k) that each row brings, for cosines (..., k), `NO_ROW` where a row brings none."""
    best = cosines.amax(-1, keepdim=True)  # (..., 1)
    gate = torch.sigmoid(SHARPNESS * (best - threshold)) * (best > NO_ROW)  # (..., 1)
    share = torch.softmax(cosines.masked_fill(cosines <= NO_ROW, -1e4) / temperature, -1)  # (..., k)
    return (strength * weight * gate).clamp(max=MOST_WEIGHT) * share  # (..., k)


@dataclass(frozen=True)
class Shortlist:
    """The R rows of the S samples that one sentence of the batch may copy from."""

    keys: torch.Tensor  # (R, d), less the mean
    scale: torch.Tensor  # (R,) by which a product with a key becomes a cosine
    about: (
        torch.Tensor
    )  # (R, 6) token, row of the datastore, rank of its sentence, token that must be before, the last two
    coverage: torch.Tensor  # (R,) share of the input's IDF mass that its sentence has
    known: float  # the share that any sample has


@dataclass(frozen=True)
class SentenceNeighbours:
    """The best k rows for each query; as `NONE` says where there are fewer."""

    cosines: torch.Tensor  # (A, n, k)
    coverage: torch.Tensor  # (A, n, k)
    about: torch.Tensor  # (A, n, k, 6)


def inner_pieces(base: BaseModel) -> torch.Tensor:
    """Which pieces of the vocabulary (V,) go on with a word that another piece began, in scripts with spaces."""
    pieces = base.tokenizer.convert_ids_to_tokens(range(int(base.model.config.vocab_size)))
    return torch.tensor(
        [bool(piece) and piece[0].isalnum() and not re.match(f"[{WIDE}]", piece) for piece in pieces]
    )  # (V,)


def torn(before: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """Which candidates (r, n, k) continue a word that was not begun as in their sentence; `written` (r, n) precedes them."""
    return (before != ANY) & (before != written[..., None])  # (r, n, k)


def context(before: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """How many of the last two tokens before rows (..., k, 2) are those that are `written` (..., 2), the last one first."""
    last = before[..., 0] == written[..., None, 0]  # (..., k)
    return last.byte() + (last & (before[..., 1] == written[..., None, 1]))  # (..., k)


class SentenceReader:
    """The samples' rows as one batch of sentences reads them; `set_source` before each batch."""

    def __init__(
        self, datastore: Datastore, options: KnnOptions, device: Any, gate: NeighbourGate | None = None
    ) -> None:
        assert datastore.sources is not None
        assert datastore.keys is not None
        self.datastore, self.sources, self.options = datastore, datastore.sources, options
        self.device = device
        self.gate = gate.to(device) if gate is not None else None
        assert self.sources.mean is not None
        self.mean = self.sources.mean.to(device)  # (d,)
        self.inner: Any = None  # (V,) whether a piece stands inside a word
        self.rows: list[Shortlist] = []  # of each sentence of the batch
        self.about: torch.Tensor  # (1 + ΣR, 6) of all of these rows, behind `NONE`
        self.coverage: torch.Tensor  # (1 + ΣR,)
        self.starts: torch.Tensor  # (B,) the first of each sentence there
        self.before_rows: (
            torch.Tensor
        )  # (B, R, 2) the last two tokens before the rows of each sentence, filled up; for the gate
        self.covered: torch.Tensor  # (B, R) their coverage, filled up
        self.begins: torch.Tensor  # (b,) tokens that are no part of a translation, such as decoding begins with
        self.allowed: torch.Tensor  # (B,) how often the same may be copied

    def with_settings(self, options: KnnOptions, gate: NeighbourGate | None = None) -> SentenceReader:
        other = copy.copy(self)
        other.options, other.gate = options, gate.to(self.device) if gate is not None else None
        return other

    # -- a batch's shortlists

    def set_source(
        self, base: BaseModel, rows: Sequence[Sequence[int]], blocked: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Shortlists for source rows (token ids without padding); `blocked` names sentences that must not be found."""
        skip = base.special_ids
        plain = [[i for i in row if i not in skip] for row in rows]
        if self.inner is None:
            self.inner = inner_pieces(base)  # (V,)
        self.begins = torch.tensor(sorted(skip), device=self.device)  # (b,)
        most = self.options.shortlist or 1
        texts = [joined(base.tokenizer.convert_ids_to_tokens(row)) for row in plain]
        self.rows = [
            self.rows_of(*self.sources.shortlist(row, most, blocked[i] if blocked else ()), texts[i])
            for i, row in enumerate(plain)
        ]
        self.about = torch.cat([torch.tensor([NONE], device=self.device), *(one.about for one in self.rows)])
        self.coverage = torch.cat([self.mean.new_zeros(1), *(one.coverage for one in self.rows)])
        counts = torch.tensor([1, *(len(one.about) for one in self.rows)], device=self.device)  # (1 + B,)
        self.starts = counts.cumsum(0)[:-1]  # (B,)
        if self.gate is not None:
            pad = torch.nn.utils.rnn.pad_sequence
            self.before_rows = pad([one.about[:, 4:] for one in self.rows], batch_first=True)  # (B, R, 2)
            self.covered = pad([one.coverage for one in self.rows], batch_first=True)  # (B, R)
        self.allowed = torch.tensor([repeats(row) for row in plain], device=self.device)  # (B,)

    def rows_of(
        self, sentences: NDArray[np.int64], coverage: NDArray[np.float32], known: float, text: str
    ) -> Shortlist:
        """The rows of these sentences (S,) of the samples that may be copied into a translation of a text."""
        assert self.datastore.keys is not None
        entries, ranks = self.sources.rows_of(sentences, text)  # (R,) each
        keys = self.datastore.keys[entries].to(self.device, torch.float32).sub_(self.mean)  # (R, d)
        tokens = self.datastore.tokens[entries].long()  # (R,)
        last, one_before = self.before(entries, 1), self.before(entries, 2)  # (R,) each
        needed = torch.where(self.inner[tokens], last, torch.full_like(last, ANY))  # (R,)
        about = torch.stack([tokens, entries, ranks, needed, last, one_before], -1).to(self.device)  # (R, 6)
        shares = torch.from_numpy(coverage)[ranks].to(self.device)  # (R,)
        return Shortlist(keys, 1 / keys.norm(dim=-1).clamp(min=1e-6), about, shares, known)

    def before(self, entries: torch.Tensor, count: int) -> torch.Tensor:
        """The tokens (R,) that stand `count` before those of rows (R,) in their sentences."""
        earlier = (entries - count).clamp(min=0)  # (R,)
        whose = self.datastore.sentences
        tokens = self.datastore.tokens[earlier].long()  # (R,)
        return tokens.masked_fill((whose[earlier] != whose[entries]) | (entries < count), NO_TOKEN)  # (R,)

    def nearest(
        self, queries: torch.Tensor, sentences: Sequence[int], k: int, written: torch.Tensor | None = None
    ) -> SentenceNeighbours:
        """The best k rows for queries (A, n, d), of these A sentences of the batch, the best first: by cosine, or by the gate's
        scores where there is one and `written` (A, n, 2) are the last two tokens before each query.
        """
        asked = torch.nn.functional.normalize(queries.float() - self.mean, dim=-1)  # (A, n, d)
        rows = [self.rows[i] for i in sentences]
        wide = max(len(one.scale) for one in rows)
        count = min(k, wide)
        each = asked.new_full((*asked.shape[:2], wide), NO_ROW)  # (A, n, R) cosines
        for i, one in enumerate(rows):
            # Keys on the left: they are read once, in half the time of the product the other way around.
            torch.mul((one.keys @ asked[i].T).T, one.scale, out=each[i, :, : len(one.scale)])
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
        return SentenceNeighbours(cosines, self.coverage[index], self.about[index])

    def known(self, sentences: torch.Tensor) -> torch.Tensor:
        """The share of their IDF mass that any sample has, of these sentences of the batch, in their shape."""
        return sentences.new_tensor([rows.known for rows in self.rows], dtype=self.mean.dtype)[sentences]

    # -- at each step

    @contextlib.contextmanager
    def attach(self, base: BaseModel, strength: float, seen: dict[str, torch.Tensor] | None = None) -> Iterator[None]:
        """Hook the base's output layer for the duration of the block."""
        head = base.model.get_output_embeddings()
        bias = output_bias(base)
        with StateCapture(base, self.options.keys) as tap, Steps(base) as steps:

            def mixed(module: Any, args: Any, logits: torch.Tensor) -> torch.Tensor:
                return self.interpolate(tap.states, logits, bias, strength, steps, seen)

            with head.register_forward_hook(mixed):
                yield

    def interpolate(
        self, states: torch.Tensor, logits: torch.Tensor, bias: torch.Tensor | None, strength: float, steps: Steps,
        seen: dict[str, torch.Tensor] | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """The logits (…, V) of the mixture at positions whose states are (…, d)."""
        queries, real = steps.laid_out(states.detach())  # (r, n, d), (r, n) or None
        sentences = steps.sentences(len(self.rows))  # (r,)
        once = sentences[:: steps.hypotheses(sentences)].tolist()  # A of them
        written = steps.written(self.begins, NO_TOKEN)  # (r, n, 2)
        result = self.nearest(
            queries.reshape(len(once), -1, queries.shape[-1]), once,
            min(self.options.k or CANDIDATES, len(self.datastore)), written.reshape(len(once), -1, 2),
        )  # (A, m * n, k)  # fmt: skip
        cosines = result.cosines.view(*queries.shape[:2], -1)  # (r, n, k)
        about = result.about.view(*cosines.shape, len(NONE))  # (r, n, k, 6)
        tokens, entries = about[..., 0], about[..., 1]  # (r, n, k) each
        history = steps.history(sentences, tokens, entries)
        refused = again(history, tokens, entries, self.allowed[sentences])  # (r, n, k)
        refused |= torn(about[..., 3], steps.ids)  # (r, n, k)
        cosines = cosines.masked_fill(refused, NO_ROW)  # (r, n, k)

        def of_logits(value: torch.Tensor) -> torch.Tensor:
            """Values (r, n, ...) at the positions that have logits, (R, ...)."""
            return value[real] if real is not None else value.flatten(0, 1)

        flat = logits.view(-1, logits.shape[-1])  # (R, V)
        whole = flat.float() if bias is None else flat.float() + bias  # (R, V)
        top = whole.amax(-1, keepdim=True)  # (R, 1)
        lse = top - torch.log_softmax(whole, -1).amax(-1, keepdim=True)  # (R, 1); quicker than logsumexp
        tokens, cosines = of_logits(tokens), of_logits(cosines)  # (R, k) each
        if self.gate is None:
            mass = copied(
                cosines, self.options.temperature or 1.0, self.options.threshold or 0.0,
                MOST_WEIGHT if self.options.weight is None else self.options.weight, strength,
            )  # (R, k)  # fmt: skip
        else:
            rows = GateInputs(
                cosines, of_logits(result.coverage.view(*queries.shape[:2], -1)), of_logits(context(about[..., 4:], written)),
                of_logits(self.known(sentences)[:, None].expand(queries.shape[:2])),
                (top - lse)[:, 0].detach(),
            )  # fmt: skip
            weight = MOST_WEIGHT if self.options.weight is None else self.options.weight
            mass = self.gate.masses(rows, weight, strength)  # (R, k)
        if seen is not None:
            seen |= {"rows": of_logits(entries), "mass": mass, "distances": 1 - cosines}
        asking = (mass.sum(-1) > LITTLE).nonzero()[:, 0]  # (r',)
        if not len(asking):
            return logits
        if 2 * len(asking) > len(flat):
            return mix(flat, tokens, mass, bias, lse).view_as(logits)
        part = mix(flat[asking], tokens[asking], mass[asking], bias, lse[asking])  # (r', V)
        put = flat.index_copy if flat.requires_grad else flat.index_copy_
        return put(0, asking, part).view_as(logits)
