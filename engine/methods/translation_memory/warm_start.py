"""The retriever's warm start (paper 2, section 3.4): cross-alignment of sentences and of their words.

    L_snt = -log exp(S_ii) / Σ_j exp(S_ij)                                    S = X Zᵀ within the batch
    L_tok = -Σ_{w in y_i} log p(w | x_i) - Σ_{w in x_i} log p(w | y_i)       bags of words, each word once

Without it, the memory retrieves nothing useful, so the model learns to ignore it and the retriever gets no gradient. The maps
from a sentence to its words use the base's embeddings. They are needed only for the warm start and are not stored.

The sum over some twenty words outweighs L_snt a hundredfold, and scalar products of unit vectors give a flat softmax. This does
little harm with hundreds of thousands of pairs, but great harm with a thousand (docs/methods/translation_memory.md). The defaults
are therefore a mean over words and a temperature.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.base import BaseModel
from engine.core.devices import fast_bfloat16
from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.methods.transformer import padded
from engine.methods.translation_memory.config import TranslationMemoryConfig
from engine.methods.translation_memory.encoders import DualEncoder, encode_all

EVERY = 50  # updates between validations on held-out pairs
PATIENCE = 3  # validations without improvement before stopping


def sentence_loss(x: Tensor, z: Tensor, temperature: float = 1.0) -> Tensor:
    """L_snt for vectors (B, v), a mean over the B pairs of a batch."""
    scores = x @ z.T / temperature  # (B, B)
    return -scores.log_softmax(-1).diagonal().mean()  # ()


def word_loss(logits: Tensor, bags: Sequence[Sequence[int]], mean: bool = False) -> Tensor:
    """-Σ_{w in bag} log p(w) for logits (B, V) and the words of each bag: a mean over the B sentences, or over words if `mean`."""
    log_p = logits.float().log_softmax(-1)  # (B, V)
    rows = torch.tensor([i for i, bag in enumerate(bags) for _ in bag], device=logits.device)  # (N,)
    words = torch.tensor([word for bag in bags for word in bag], device=logits.device)  # (N,)
    return -log_p[rows, words].sum() / (max(1, len(words)) if mean else len(bags))  # ()


class WarmStart(nn.Module):
    """The losses of the warm start, with the maps from a sentence's state to the words of its translation."""

    def __init__(self, base: BaseModel, encoders: DualEncoder, config: TranslationMemoryConfig) -> None:
        super().__init__()
        d = base.d_model
        self.encoders, self.temperature, self.mean = encoders, config.warm_temperature, config.warm_words == "mean"
        self.to_target, self.to_source = nn.Linear(d, d), nn.Linear(d, d)
        self.special, self.pad, self.device = base.special_ids, base.pad, base.device
        stacks = base.model.get_decoder(), base.model.get_encoder()
        self._words: tuple[Tensor, ...] = tuple(stack.embed_tokens.weight.detach() for stack in stacks)  # (V, d) each

    def bags(self, rows: Sequence[list[int]]) -> list[list[int]]:
        return [sorted(set(row) - self.special) for row in rows]

    def forward(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        """(L_snt, L_tok) for a batch of pairs given as ids."""
        encoders = self.encoders
        x = encoders.source.state(*padded(list(sources), self.pad, self.device))  # (B, d)
        z = encoders.target.state(*padded(list(targets), self.pad, self.device))  # (B, d)
        snt = sentence_loss(encoders.source.vector(x), encoders.target.vector(z), self.temperature)  # ()
        to_target = self.to_target(x) @ self._words[0].to(x.dtype).T  # (B, V)
        to_source = self.to_source(z) @ self._words[1].to(z.dtype).T  # (B, V)
        words = word_loss(to_target, self.bags(targets), self.mean) + word_loss(to_source, self.bags(sources), self.mean)
        return snt, words  # (), ()


def recall(
    base: BaseModel, encoders: DualEncoder, sources: Sequence[list[int]], targets: Sequence[list[int]], temperature: float = 1.0
) -> tuple[float, float]:
    """The share of sources whose target is the nearest of all targets, and L_snt over all pairs as one batch."""
    x = torch.from_numpy(encode_all(encoders.source, sources, base.pad, base.device))  # (N, v)
    z = torch.from_numpy(encode_all(encoders.target, targets, base.pad, base.device))  # (N, v)
    expected = torch.arange(len(x))  # (N,)
    return float(((x @ z.T).argmax(1) == expected).float().mean()), float(sentence_loss(x, z, temperature))


def warm_up(
    base: BaseModel, encoders: DualEncoder, train: Sequence[SentencePair], valid: Sequence[SentencePair],
    config: TranslationMemoryConfig, progress: Progress, seed: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Train both encoders in place and keep the best weights by L_snt on the held-out pairs.

    Returns {"updates", "recall", "recall_before"}. Deterministic; torch's global generator is not changed.
    """
    limit = min(base.max_tokens, 4 * config.max_tokens)

    def ids(pairs: Sequence[SentencePair]) -> tuple[list[list[int]], list[list[int]]]:
        sources, targets = base.encode([p.source for p in pairs]), base.encode_target([p.target for p in pairs])
        # Targets without special tokens, as in the memory.
        words = [[token for token in row if token not in base.special_ids] or row for row in targets]
        return [row[:limit] for row in sources], [row[: config.max_tokens] for row in words]

    with base.lock:
        sources, targets = ids(train)
        held_out = ids(valid)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        before, _ = recall(base, encoders, *held_out, config.warm_temperature)
        if config.init == "base":
            encoders.centre(sources, targets, base.pad, base.device)
        start = WarmStart(base, encoders, config).to(base.device).train()
        optimizer = torch.optim.Adam(start.parameters(), lr=config.warm_learning_rate, betas=(0.9, 0.98), eps=1e-9)
        reached, loss = recall(base, encoders, *held_out, config.warm_temperature)
        best: tuple[float, dict[str, object]] = (loss, {k: v.clone() for k, v in encoders.state_dict().items()})
        draw, worse, done = random.Random(seed), 0, 0
        order: list[int] = []
        for update in range(config.warm_updates):
            progress.advance(update, config.warm_updates, f"recall {reached:.0%}")
            if len(order) < min(config.warm_batch, len(train)):
                order = list(range(len(train)))
                draw.shuffle(order)
            batch, order = order[: config.warm_batch], order[config.warm_batch :]
            for group in optimizer.param_groups:
                group["lr"] = config.warm_learning_rate * min(1.0, (update + 1) / max(1, config.warm_updates // 10))
            mixed = base.dtype == torch.float32 and fast_bfloat16(base.device)
            with torch.autocast(base.device.type, dtype=torch.bfloat16) if mixed else contextlib.nullcontext():
                snt, tok = start([sources[i] for i in batch], [targets[i] for i in batch])
            optimizer.zero_grad(set_to_none=True)
            (snt + tok).backward()
            torch.nn.utils.clip_grad_norm_(start.parameters(), 1.0)
            optimizer.step()
            done = update + 1
            if done % EVERY == 0 or done == config.warm_updates:
                share, loss = recall(base, encoders, *held_out, config.warm_temperature)
                worse = worse + 1 if loss >= best[0] else 0
                if not worse:
                    reached, best = share, (loss, {k: v.clone() for k, v in encoders.state_dict().items()})
                if worse >= PATIENCE:
                    break
        encoders.load_state_dict(best[1])
    progress.advance(config.warm_updates, config.warm_updates)
    return {"updates": done, "recall": reached, "recall_before": before}
