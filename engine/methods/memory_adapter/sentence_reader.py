"""The memory-augmented adapter's network with retrieval by sentence: it reads the few samples that are relevant to the input.

For each input, samples that share its rarest words are shortlisted once. A reader compares its query with the keys of their rows
and mixes the rows' next tokens into the anchor A (equations 4 and 5 of paper 1 with R' = A + E[tokens] instead of R Wv):

    s_i = κ cos(W q, W k_i) + β v_i              q, k in the axes of the position (engine/memory/sentence_memory.py)
    R  = Σ softmax(s)_i E[y_i] Wv                E: the base's output embeddings, y_i the token of row i
    1 - λ = sigmoid(MLP[A; c, v, u, H])          c: cosine of the best row; H: entropy of the reading; u: see below
    O  = λ A + (1 - λ)(A + R) = A + (1 - λ) R

v_i is the share of the input's IDF mass that the sentence of row i covers, and u the share that any sample covers. W is
initialised as the identity and Wv to zero. So an untrained adapter equals the base exactly, and Wv has a gradient from the first
update on (like B of LoRA). Keys are recorded in context, so they are comparable with queries. Values are the next tokens rather
than states, which would encode what has already been generated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.core.metrics import MEMORY_READS
from engine.memory.self_match import OwnText
from engine.memory.sentence_memory import SentenceMemory, Shortlist
from engine.methods.interface import Batch
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.memory_adapter.layered import LayeredReaders

SHARPNESS, COVERAGE = 10.0, 2.0  # κ and β of an untrained reader
SPEED = 10.0  # Adam moves each weight by about the learning rate: single scalars must move faster
SLOW = 0.3  # and the comparison of states more slowly
HIDDEN = 64  # hidden units of the gate
CLOSED = -2.0  # initial bias of the gate
EVIDENCE = (5.0, 5.0, 5.0, 1.0)  # scale of c, v, u and H in the gate's input, next to the d numbers of an anchor
SIZE = 4.0  # length to which embeddings are scaled, about that of an anchor
LEAST = -1e4  # score of padding rows


@dataclass
class Content:
    """The values of the rows for the sentences of a batch: embeddings of their U distinct tokens, fewer than the R rows."""

    embeddings: Tensor  # (B, U, d)
    numbers: Tensor  # (B, 1, R) index of each row's token among them

    @classmethod
    def of(cls, tokens: Tensor, table: Tensor, kind: torch.dtype) -> Content:
        """The content for the rows' tokens (B, R), from the embeddings (V, d) of all tokens, in the type `kind`."""
        ordered, order = tokens.sort(1)  # (B, R) each
        ranks = F.pad((ordered[:, 1:] != ordered[:, :-1]).long().cumsum(1), (1, 0))  # (B, R)
        distinct = tokens.new_zeros(len(tokens), int(ranks.max()) + 1).scatter(1, ranks, ordered)  # (B, U)
        return cls(F.embedding(distinct, table).to(kind), torch.empty_like(ranks).scatter(1, order, ranks)[:, None])

    def __getitem__(self, active: Tensor) -> Content:
        """The content of the sentences `active` (b,)."""
        return Content(self.embeddings[active], self.numbers[active])

    def mixed(self, weights: Tensor) -> Tensor:
        """The weighted mean (B, n, d) of the rows' embeddings, by weights (B, n, R)."""
        of_tokens = weights.new_zeros(*weights.shape[:2], self.embeddings.shape[1])  # (B, n, U)
        return of_tokens.scatter_add(2, self.numbers.expand_as(weights), weights) @ self.embeddings  # (B, n, d)


@dataclass
class Reading:
    """The rows that a reader may read for the sentences of a batch, and its weights in the form needed at each step."""

    project: Tensor  # (r, d) W times the axes
    offset: Tensor  # (r,) minus the projected mean
    sharpness: Tensor  # () κ
    by_coverage: Tensor  # () β
    keys: Tensor  # (B, R, r) W k, scaled to length κ
    content: Content  # shared by all readers
    bonus: Tensor  # (B, 1, R) β v, or `LEAST` for padding
    coverage: Tensor  # (B, R)
    known_share: Tensor  # (B, 1, 1)
    any: Tensor  # (B, 1, 1), 1 if there is any row, else 0

    def of(self, active: Tensor, content: Content) -> Reading:
        """The reading of the sentences `active` (b,), given their content."""
        selected = {name: getattr(self, name)[active] for name in ("keys", "bonus", "coverage", "known_share", "any")}
        return replace(self, content=content, **selected)


class SentenceReader(nn.Module):
    """Reads the rows of a shortlist at one position."""

    mean: Tensor
    basis: Tensor
    evidence: Tensor

    def __init__(self, d: int, size: int) -> None:
        super().__init__()
        self.match = nn.Parameter(torch.zeros(size, size))  # (W - 1) / SLOW
        self.sharpness = nn.Parameter(torch.zeros(()))
        self.by_coverage = nn.Parameter(torch.zeros(()))
        self.value = nn.Linear(d, d, bias=False)
        nn.init.zeros_(self.value.weight)
        self.gate_hidden = nn.Linear(d + len(EVIDENCE), HIDDEN)
        self.gate_out = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.gate_out.weight)
        nn.init.constant_(self.gate_out.bias, CLOSED)
        self.register_buffer("mean", torch.zeros(d), persistent=False)
        self.register_buffer("basis", torch.zeros(size, d), persistent=False)
        self.register_buffer("evidence", torch.tensor(EVIDENCE), persistent=False)
        self.batch: Reading | None = None  # for all sentences of the batch
        self.reading: Reading | None = None  # for the sentences that remain in the batch
        self.dropped = False
        self.recorded: dict[str, Tensor] | None = None  # filled while reads are being recorded

    def look_at(self, keys: Tensor, content: Content, shortlist: Shortlist) -> None:
        """Set the rows that the next batch may read: keys (B, R, r) in the axes of the position, and the rows' content."""
        kind = self.value.weight.dtype
        sharpness, by_coverage = SHARPNESS * torch.exp(SPEED * self.sharpness), COVERAGE + SPEED * self.by_coverage
        project = self.basis + SLOW * self.match @ self.basis  # (r, d)
        keys = keys.to(kind)
        compared = F.normalize(keys + SLOW * (keys @ self.match.T), dim=-1)  # (B, R, r)
        coverage = shortlist.coverage.to(kind)  # (B, R)
        bonus = (by_coverage * coverage).masked_fill(~shortlist.real, LEAST)[:, None]  # (B, 1, R)
        known_share, any_row = shortlist.known_share, shortlist.real.any(-1)  # (B,) each
        self.batch = self.reading = Reading(
            project, -project @ self.mean, sharpness, by_coverage, sharpness * compared, content, bonus, coverage,
            known_share.to(kind)[:, None, None], any_row.to(kind)[:, None, None],
        )  # fmt: skip

    def forward(self, anchor: Tensor, query: Tensor, strength: float = 1.0) -> Tensor:
        """O for anchor and query (r, T, d), where the hypotheses of a sentence are adjacent rows. `strength` scales O - A."""
        MEMORY_READS.inc(query.shape[0] * query.shape[1])
        if self.reading is None or self.dropped:
            return anchor
        shape, kind, count = anchor.shape, self.value.weight.dtype, len(self.reading.keys)
        a, q = (x.reshape(count, -1, shape[-1]).to(kind) for x in (anchor, query))  # (B, n, d) each
        change = self.read(a, q, self.reading)  # (B, n, d)
        return torch.add(anchor, change.reshape(shape).to(anchor.dtype), alpha=strength)  # (r, T, d)

    def read(self, anchor: Tensor, query: Tensor, rows: Reading) -> Tensor:
        """(1 - λ) R for anchor and query (B, n, d)."""
        q = F.normalize(F.linear(query, rows.project, rows.offset), dim=-1)  # (B, n, r)
        scores = torch.baddbmm(rows.bonus, q, rows.keys.transpose(1, 2))  # (B, n, R)
        weights = scores.softmax(-1)  # (B, n, R)
        score, best = scores.max(-1, keepdim=True)  # (B, n, 1) each
        coverage = rows.coverage.gather(1, best[..., 0])[..., None]  # (B, n, 1)
        cosine = (score - rows.by_coverage * coverage) / rows.sharpness  # (B, n, 1)
        # H = log Z - Σ w s, and log Z is the best score minus the logarithm of its weight.
        entropy = score - weights.gather(-1, best).log() - (weights * scores).sum(-1, keepdim=True)  # (B, n, 1)
        evidence = torch.cat([cosine, coverage, rows.known_share.expand_as(score), entropy], -1) * self.evidence  # (B, n, 4)
        mixed = torch.cat([SIZE * F.normalize(anchor, dim=-1), evidence], -1)  # (B, n, d + 4)
        read_weight = torch.sigmoid(self.gate_out(F.relu(self.gate_hidden(mixed)))) * rows.any  # (B, n, 1), 1 - λ
        if self.recorded is not None:
            self.recorded |= {"weights": weights, "gate": 1 - read_weight, "entropy": entropy}
        return read_weight * self.value(rows.content.mixed(weights))  # (B, n, d)


class SentenceReaders(LayeredReaders):
    """The readers of the selected decoder layers, which share one memory."""

    def __init__(self, d: int, layers: int, config: MemoryAdapterConfig) -> None:
        chosen = config.layers if config.layers is not None else tuple(range(layers - min(layers, config.reading_layers), layers))
        super().__init__(config, chosen, lambda: SentenceReader(d, min(config.key_size, d)))
        self.memory: SentenceMemory | None = None
        self.embeddings: list[Tensor] = []  # the base's; in a list, so that they are not registered in this module
        self._own: OwnText | None = None
        self.shortlist: Shortlist | None = None
        self.roll = 0  # number of rows by which shortlists are shifted in the batch

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Disable readers, adapters and tuned weights inside the block, so that the attached module does not change the base."""
        parts = [reader for _, _, reader in self.readers()] + [part for _, _, _, part in self.adapters.placed()]
        try:
            for part in parts:
                part.dropped = True
            with self.tuned.set_aside() if self.tuned is not None else contextlib.nullcontext():
                yield
        finally:
            for part in parts:
                part.dropped = False

    @contextlib.contextmanager
    def rolled(self) -> Iterator[None]:
        """Inside the block, each sentence reads the shortlist of the previous sentence in the batch."""
        self.roll = 1
        try:
            yield
        finally:
            self.roll = 0

    def locations(self) -> list[tuple[int, str]]:
        return [(layer, attention) for layer, attention, _ in self.readers()]

    def set_memory(self, memory: SentenceMemory | None, base: Any) -> None:
        """Set the memory that is read from the next batch on; None: no memory."""
        self.memory, self._own, self.shortlist = memory, None, None
        table = base.model.get_output_embeddings().weight.detach()  # (V, d)
        self.embeddings = [table * (SIZE / table.float().norm(dim=-1).mean().item())]  # (V, d)
        for layer, attention, reader in self.readers():
            reader.batch = reader.reading = None
            if memory is not None:
                axes = memory.axes[layer, attention]
                reader.mean, reader.basis = (part.to(reader.value.weight) for part in (axes.mean, axes.basis))

    def set_source(self, base: Any, sources: Tensor, batch: Batch | None = None) -> None:
        """Shortlist the memory for source tokens (B, S). In training, sentences do not retrieve themselves (decision 0009)."""
        memory = self.memory
        if memory is None:
            return
        inputs = [[i for i in row if i != base.pad] for row in sources.tolist()]
        blocked: Sequence[Collection[int]] = ()
        if batch is not None and memory.sentences:
            if self._own is None:
                pairs = memory.sentences
                self._own = OwnText([pair.target for pair in pairs], [pair.source for pair in pairs])
            pairs = [batch.pairs.sentences[i] for i in batch.rows]
            blocked = [self._own.of(pair.source, pair.target) for pair in pairs]
        shortlist = memory.shortlist(base, inputs, self.config.shortlist, blocked)
        shortlist = self.shortlist = shortlist.shifted(self.roll) if self.roll else shortlist
        rows = shortlist.rows.cpu()  # (B, R)
        tokens = memory.tokens[rows].to(base.device, torch.long)  # (B, R)
        content = Content.of(tokens, self.embeddings[0], next(self.parameters()).dtype)
        for layer, attention, reader in self.readers():
            reader.look_at(memory.keys[layer, attention][rows].to(base.device), content, shortlist)

    def on_batch_shrink(self, active: Tensor) -> None:
        """Continue with only the sentences `active` (b,) of the batch."""
        content: Content | None = None
        for _, _, reader in self.readers():
            if reader.batch is not None:
                active = active.to(reader.batch.keys.device)  # (b,)
                content = reader.batch.content[active] if content is None else content
                reader.reading = reader.batch.of(active, content)
