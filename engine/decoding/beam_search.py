"""Beam search with the results of `transformers.generate` in less time, for use as its `custom_generate`.

The algorithm is that of `GenerationMixin._beam_search` (same candidates, scores, length penalty and stopping heuristic),
without its superfluous work for an encoder-decoder model:

- the first step, where all hypotheses of a sentence are identical, is computed for one of them;
- a sentence leaves the batch when its results cannot improve any more, instead of waiting for the slowest sentence;
- keys and values of the source, which all hypotheses of a sentence share, are not moved at every step, and with standard
  attention modules they are held once per sentence, with its hypotheses as queries;
- the best candidates are taken from each hypothesis' logits, without a copy of the whole distribution if no processor needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from torch import Tensor

NEVER = -1.0e9  # the score that transformers gives to forbidden tokens
BLOCK = 64  # vocabulary entries per block in the selection of the best
CROWD = 0.85  # rows leave once at most this share is unfinished, since copying the caches has a cost


def beam_search(
    model: Any,
    input_ids: Tensor,
    logits_processor: Any,
    generation_config: Any,
    needs_fixed_batch: bool = False,
    batch_beams_per_sentence: bool = True,
    on_batch_shrink: Callable[[Tensor], None] | None = None,
    **model_kwargs: Any,
) -> Tensor:
    """The best translations of each sentence: padded ids (B * n, T), best first; n is `num_return_sequences`.

    Called by `model.generate(..., custom_generate=beam_search)` with decoder prompts (B * K, P) and the encoder's output.
    `needs_fixed_batch` keeps all sentences in the batch until the last one is finished, for plugins that keep state per row.
    Without `batch_beams_per_sentence`, cross-attention receives each hypothesis as a separate row. `on_batch_shrink` is called
    with the indices of the sentences that remain when finished ones leave the batch.
    """
    import torch

    from engine.decoding.decoder import Decoder

    rules = _Rules.of(generation_config, input_ids.shape[1])
    beams, longest = rules.beams, rules.longest
    encoded = model_kwargs["encoder_outputs"].last_hidden_state[::beams]  # (B, S, d)
    mask = model_kwargs["attention_mask"][::beams]  # (B, S)
    decoder = Decoder(model, encoded, mask, batch_beams_per_sentence)
    token = input_ids[::beams]  # (b * k, P)
    state = _Hypotheses.start(token, rules)
    result = torch.full(
        (len(token), rules.returned, longest), rules.pad, dtype=torch.long, device=token.device
    )  # (B, n, T) the results

    with decoder.stack:
        for length in range(rules.prompt, longest):
            logits = decoder(token, length - token.shape[1])  # (b * k, V)
            b, k = state.scores.shape
            best = candidates(logits, state.running[:, :, :length], state.scores, logits_processor, rules.candidate_count)
            owners, finished = state.extend(*best, length, rules)
            result[state.active[finished]] = state.ended[finished, : rules.returned]
            at_work = int(state.unfinished.sum())
            if not at_work:
                break

            # The rows of the caches that the next step reads.
            rows = (torch.arange(b, device=token.device)[:, None] * k + owners).flatten()  # (b * K,)
            if k != beams:
                decoder.widen(beams)
            remaining = None
            if not needs_fixed_batch and at_work <= CROWD * b:
                remaining = state.unfinished.nonzero().squeeze(1)  # (b',)
                state.keep(remaining)
                rows = rows.view(b, beams)[remaining].flatten()  # (b' * K,)
                if on_batch_shrink is not None:
                    on_batch_shrink(state.active)
            decoder.reorder(rows, remaining)
            token = state.running[:, :, length].reshape(-1, 1)  # (b' * K, 1)
    result = result.flatten(0, 1)  # (B * n, T)
    used_columns = (result != rules.pad).any(0).nonzero()  # columns that are not all padding
    return result[:, : int(used_columns[-1]) + 1 if len(used_columns) else rules.prompt]


@dataclass(frozen=True)
class _Rules:
    """The settings of a search: numbers of hypotheses, candidates and results per sentence, lengths, stopping rules."""

    beams: int
    returned: int
    candidate_count: int
    prompt: int
    longest: int
    penalty: float
    early: bool | str
    ends: Tensor  # (E,)
    pad: int

    @classmethod
    def of(cls, config: Any, prompt: int) -> Self:
        ends = config._eos_token_tensor
        return cls(
            config.num_beams, config.num_return_sequences or 1, max(2, 1 + len(ends)) * config.num_beams, prompt,
            config.max_length, config.length_penalty,
            config.early_stopping, ends, int(config._pad_token_tensor),
        )  # fmt: skip


@dataclass
class _Hypotheses:
    """The hypotheses of the sentences in the batch: k running ones each (at first one) and the K best finished ones."""

    active: Tensor  # (b,) indices of the sentences
    unfinished: Tensor  # (b,)
    running: Tensor  # (b, k, T)
    scores: Tensor  # (b, k)
    ended: Tensor  # (b, K, T)
    ended_scores: Tensor  # (b, K)
    full: Tensor  # (b, K) whether the slot holds a finished hypothesis

    @classmethod
    def start(cls, prompts: Tensor, rules: _Rules) -> Self:
        """The initial state: only the prompts (B, P)."""
        import torch

        count, device = len(prompts), prompts.device
        running = torch.full((count, 1, rules.longest), rules.pad, dtype=torch.long, device=device)  # (B, 1, T)
        running[:, 0, : rules.prompt] = prompts
        return cls(
            torch.arange(count, device=device),
            torch.ones(count, dtype=torch.bool, device=device),
            running,
            torch.zeros(count, 1, device=device),
            running.expand(-1, rules.beams, -1).clone(),
            torch.full((count, rules.beams), NEVER, device=device),
            torch.zeros(count, rules.beams, dtype=torch.bool, device=device),
        )

    def extend(self, values: Tensor, tokens: Tensor, owners: Tensor, length: int, rules: _Rules) -> tuple[Tensor, Tensor]:
        """Extend hypotheses of this length by the result of `candidates`.

        Returns the index of the hypothesis that each new one continues (b, K), and which sentences have just finished (b,).
        """
        import torch

        beams, longest, long = rules.beams, rules.longest, length + 1 - rules.prompt
        lines = self.running.gather(1, owners[..., None].expand(-1, -1, longest))  # (b, C, T)
        lines[:, :, length] = tokens
        hits = torch.isin(tokens, rules.ends) | (length + 1 >= longest)  # (b, C)
        completed = hits & (torch.arange(rules.candidate_count, device=tokens.device) < beams)  # (b, C)

        # The hypotheses that continue, and the finished ones that are better than those stored.
        running_scores = values + hits * NEVER  # (b, C)
        chosen = running_scores.topk(beams).indices  # (b, K)
        barred = ~completed  # (b, C)
        if rules.early is True:
            barred = barred | self.full.all(1, keepdim=True)  # (b, C)
        merged = torch.cat([self.ended_scores, values / long**rules.penalty + barred * NEVER], 1)  # (b, K + C)
        best = merged.topk(beams).indices  # (b, K)
        self.ended = torch.cat([self.ended, lines], 1).gather(1, best[..., None].expand(-1, -1, longest))
        self.ended_scores = merged.gather(1, best)
        self.full = torch.cat([self.full, completed], 1).gather(1, best)
        self.running = lines.gather(1, chosen[..., None].expand(-1, -1, longest))
        self.scores = running_scores.gather(1, chosen)

        # Can a running hypothesis still become better than the finished ones?
        ahead = longest - rules.prompt if rules.early == "never" and rules.penalty > 0 else long
        worst = torch.where(self.full, self.ended_scores.min(1, keepdim=True).values, NEVER)  # (b, K)
        hope = (self.scores[:, :1] / ahead**rules.penalty > worst).any(1) & ~hits.all(1)  # (b,)
        if rules.early is True:
            hope &= ~self.full.all(1)
        finished = self.unfinished & ~hope  # (b,)
        self.unfinished = self.unfinished & hope
        return owners.gather(1, chosen), finished

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def candidates(logits: Tensor, running: Tensor, scores: Tensor, processors: Any, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best `count` continuations of each sentence's hypotheses (b, k, length): scores, tokens and hypotheses, (b, C) each.

    Logits are (b * k, V), scores (b, k).
    """
    import torch

    b, k = scores.shape
    barred = barred_tokens(processors)
    if barred is None:
        chances = processors(running.reshape(b * k, -1), torch.log_softmax(logits, -1))  # (b * k, V)
        best, tokens = top(chances, count)  # (b * k, c)
    else:
        chances = torch.log_softmax(logits, -1)  # (b * k, V)
        if barred:
            chances[:, barred] = NEVER
        best, tokens = top(chances, count)  # (b * k, c)
    # Clamped to stay finite, so that sums never become NaN.
    best = best.clamp(min=NEVER).view(b, k, -1) + scores[..., None]  # (b, k, c)
    values, indices = best.flatten(1).topk(min(count, best.shape[1] * best.shape[2]))  # (b, C)
    return values, tokens.reshape(b, -1).gather(1, indices), indices // best.shape[2]


def barred_tokens(processors: Any) -> list[int] | None:
    """The tokens that the processors forbid at every step; None if a processor does anything else."""
    barred: list[int] = []
    for processor in processors:
        words = getattr(processor, "sequence_bias", None)  # {tokens: bias}, without the end of sentence
        if type(processor).__name__ != "NoBadWordsLogitsProcessor" or words is None or any(len(word) > 1 for word in words):
            return None
        barred += [token for (token,) in words]
    return barred


def top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest values of each row (R, V) and their indices, (R, c) each.

    On a CPU, the maxima of blocks of 64 are compared first: the best values are in the blocks with the largest maxima, so only
    a fraction of the vocabulary is sorted.
    """
    import torch

    size = values.shape[1]
    count = min(count, size)
    blocks = size // BLOCK
    if values.device.type != "cpu" or blocks < 4 * count:
        return tuple(values.topk(count))  # type: ignore[return-value]
    split = values[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))  # (R, n, 64)
    chosen = split.amax(-1).topk(count).indices  # (R, c) blocks
    begins = torch.arange(len(values))[:, None] * size + chosen * BLOCK  # (R, c)
    inside = values.reshape(-1).unfold(0, BLOCK, 1).index_select(0, begins.flatten()).view(len(values), -1)  # (R, c * 64)
    best, at = torch.cat([inside, values[:, blocks * BLOCK :]], 1).topk(count)  # (R, c)
    tail = at - count * BLOCK  # (R, c) index in the remainder after the blocks
    in_block = chosen.gather(1, (at // BLOCK).clamp_(max=count - 1)) * BLOCK + at % BLOCK  # (R, c)
    return best, torch.where(tail < 0, in_block, blocks * BLOCK + tail)
