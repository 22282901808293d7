"""Beam search that gives what `transformers.generate` gives, in less time: a drop-in for its `custom_generate`.

The search is that of `GenerationMixin._beam_search` (the same candidates, scores, length penalty and heuristic of when to
stop), without what it does in vain for an encoder-decoder model:

- the first step, where all hypotheses of a sentence are the same, is done for one of them;
- a sentence leaves the batch when nothing can improve on what it has, instead of waiting for the slowest;
- keys and values of the source, which all hypotheses of a sentence share, are not moved at every step, and where the model
  has attention of the usual make they are held once a sentence: its hypotheses are so many queries;
- the best candidates are taken from the logits of each hypothesis, without a copy of its whole distribution, where no
  processor wants to see it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from engine.base.cache_argument import cache_argument

if TYPE_CHECKING:
    from torch import Tensor, nn

NEVER = -1.0e9  # what transformers gives to what must not be chosen
CROWD = 0.85  # rows leave when at most this share of them is still at work, since copying the caches costs something


def beam_search(
    model: Any,
    input_ids: Tensor,
    logits_processor: Any,
    generation_config: Any,
    fixed_rows: bool = False,
    share_source: bool = True,
    stay: Callable[[Tensor], None] | None = None,
    **model_kwargs: Any,
) -> Tensor:
    """The best translation of each sentence: ids (B, T), filled up with padding.

    Called by `model.generate(..., custom_generate=beam_search)` with decoder prompts (B * K, P) and what it has encoded.
    `fixed_rows` keeps all sentences in the batch until the last is done, for plugins that remember which row is which;
    without `share_source` the attention over the source sees every hypothesis by itself. `stay` is told which sentences are left,
    numbered from 0, when others have gone.
    """
    import torch
    from transformers import DynamicCache, EncoderDecoderCache
    from transformers.modeling_outputs import BaseModelOutput

    rules = _Rules.of(generation_config, input_ids.shape[1])
    beams, longest = rules.beams, rules.longest
    encoded = model_kwargs["encoder_outputs"].last_hidden_state[::beams]  # (B, S, d)
    mask = model_kwargs["attention_mask"][::beams]  # (B, S)
    device = input_ids.device
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    named = cache_argument(model)
    readers = source_attention(model) if share_source else []
    token = input_ids[::beams]  # (b * k, P)
    state = _Hypotheses.start(token, rules)
    result = torch.full((len(token), longest), rules.pad, dtype=torch.long, device=device)  # (B, T) what is returned

    with contextlib.ExitStack() as stack:
        for length in range(rules.prompt, longest):
            logits = (
                model(
                    decoder_input_ids=token,
                    encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
                    attention_mask=mask,
                    **{named: cache},
                    use_cache=True,
                    return_dict=True,
                )
                .logits[:, -1]
                .float()
            )  # (b * k, V)
            b, k = state.scores.shape
            best = candidates(
                logits, state.running[:, :, :length], state.scores, logits_processor, rules.candidate_count
            )
            owners, finished = state.extend(*best, length, rules)
            result[state.alive[finished]] = state.ended[finished, 0]
            at_work = int(state.going.sum())
            if not at_work:
                break

            # Which rows of the caches the next step reads.
            rows = (torch.arange(b, device=device)[:, None] * k + owners).flatten()  # (b * K,)
            if k != beams:
                encoded, mask = encoded.repeat_interleave(beams, 0), mask.repeat_interleave(beams, 0)  # (b * K, S[, d])
                if readers:
                    stack.enter_context(by_sentence(readers, beams))
                else:
                    cache.cross_attention_cache.batch_repeat_interleave(beams)
            if not fixed_rows and at_work <= CROWD * b:
                left = state.going.nonzero().squeeze(1)  # (b',)
                state.keep(left)
                wide = (left[:, None] * beams + torch.arange(beams, device=device)).flatten()  # (b' * K,)
                rows, encoded, mask = rows[wide], encoded[wide], mask[wide]
                if stay is not None:
                    stay(state.alive)
                cache.cross_attention_cache.batch_select_indices(left if readers else wide)
            cache.self_attention_cache.batch_select_indices(rows)
            token = state.running[:, :, length].reshape(-1, 1)  # (b' * K, 1)
    filled = (result != rules.pad).any(0).nonzero()  # columns with anything in them
    return result[:, : int(filled[-1]) + 1 if len(filled) else rules.prompt]


@dataclass(frozen=True)
class _Rules:
    """The settings of a search: hypotheses and candidates a sentence, tokens of the prompt and at most, when it stops."""

    beams: int
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
            config.num_beams, max(2, 1 + len(ends)) * config.num_beams, prompt, config.max_length, config.length_penalty,
            config.early_stopping, ends, int(config._pad_token_tensor),
        )  # fmt: skip


@dataclass
class _Hypotheses:
    """Those of the sentences in the batch: k a sentence go on (one before the first step), K are the best of the done ones."""

    alive: Tensor  # (b,) the sentences, by number
    going: Tensor  # (b,) whether they are at work
    running: Tensor  # (b, k, T)
    scores: Tensor  # (b, k)
    ended: Tensor  # (b, K, T)
    ended_scores: Tensor  # (b, K)
    full: Tensor  # (b, K) which of the done ones there are

    @classmethod
    def start(cls, prompts: Tensor, rules: _Rules) -> Self:
        """Nothing but the prompts (B, P)."""
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

    def extend(
        self, values: Tensor, tokens: Tensor, owners: Tensor, length: int, rules: _Rules
    ) -> tuple[Tensor, Tensor]:
        """Take what `candidates` found for hypotheses of that length. Returns the hypotheses that the new ones go on from (b, K),
        and which sentences have just finished (b,).
        """
        import torch

        beams, longest, long = rules.beams, rules.longest, length + 1 - rules.prompt
        lines = self.running.gather(1, owners[..., None].expand(-1, -1, longest))  # (b, C, T)
        lines[:, :, length] = tokens
        hits = torch.isin(tokens, rules.ends) | (length + 1 >= longest)  # (b, C)
        good = hits & (torch.arange(rules.candidate_count, device=tokens.device) < beams)  # (b, C)

        # The hypotheses that go on, and the ones that are done and better than those there are.
        left = values + hits * NEVER  # (b, C)
        chosen = left.topk(beams).indices  # (b, K)
        barred = ~good  # (b, C)
        if rules.early is True:
            barred = barred | self.full.all(1, keepdim=True)  # (b, C)
        merged = torch.cat([self.ended_scores, values / long**rules.penalty + barred * NEVER], 1)  # (b, K + C)
        best = merged.topk(beams).indices  # (b, K)
        self.ended = torch.cat([self.ended, lines], 1).gather(1, best[..., None].expand(-1, -1, longest))
        self.ended_scores = merged.gather(1, best)
        self.full = torch.cat([self.full, good], 1).gather(1, best)
        self.running = lines.gather(1, chosen[..., None].expand(-1, -1, longest))
        self.scores = left.gather(1, chosen)

        # Can what goes on become better than what is done?
        ahead = longest - rules.prompt if rules.early == "never" and rules.penalty > 0 else long
        worst = torch.where(self.full, self.ended_scores.min(1, keepdim=True).values, NEVER)  # (b, K)
        hope = (self.scores[:, :1] / ahead**rules.penalty > worst).any(1) & ~hits.all(1)  # (b,)
        if rules.early is True:
            hope &= ~self.full.all(1)
        finished = self.going & ~hope  # (b,)
        self.going = self.going & hope
        return owners.gather(1, chosen), finished

    def keep(self, rows: Tensor) -> None:
        """Drop the other sentences."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def candidates(
    logits: Tensor, running: Tensor, scores: Tensor, processors: Any, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best `count` continuations of each sentence's hypotheses (b, k, length): their scores, tokens and hypotheses,
    (b, C) each. Logits are (b * k, V), scores (b, k).
    """
    import torch

    b, k = scores.shape
    if len(processors):
        chances = processors(running.reshape(b * k, -1), torch.log_softmax(logits, -1))  # (b * k, V)
        best, tokens = chances.topk(min(count, chances.shape[-1]))  # (b * k, c)
    else:
        best, tokens = logits.topk(min(count, logits.shape[-1]))  # (b * k, c)
        best = best - logits.logsumexp(-1, keepdim=True)  # (b * k, c)
    # What a processor forbids stays finite, so that a sum never becomes "not a number".
    best = best.clamp(min=NEVER).view(b, k, -1) + scores[..., None]  # (b, k, c)
    values, indices = best.flatten(1).topk(min(count, best.shape[1] * best.shape[2]))  # (b, C)
    return values, tokens.reshape(b, -1).gather(1, indices), indices // best.shape[2]


def source_attention(model: Any) -> list[nn.Module]:
    """The decoder's attention over the source, a module a layer; empty where a layer has none of the usual name."""
    results = [getattr(layer, "encoder_attn", None) for layer in getattr(model.get_decoder(), "layers", ())]
    return [] if None in results else [one for one in results if one is not None]


@contextlib.contextmanager
def by_sentence(readers: list[nn.Module], beams: int) -> Iterator[None]:
    """Within the block the modules see the hypotheses of a sentence, rows (b * K, 1, d), as its queries (b, K, d), so that
    keys, values and mask need no copy for each. Hooks of plugins, which are there before, see queries and output as (b, K, d).
    """

    def gather(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        states = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (b * K, 1, d)
        queries = states.reshape(-1, beams, states.shape[-1])  # (b, K, d)
        changed = dict(kwargs)
        if changed.get("attention_mask") is not None:
            changed["attention_mask"] = changed["attention_mask"][::beams]  # (b, 1, 1, S)
        if "hidden_states" in kwargs:
            changed["hidden_states"] = queries
            return args, changed
        return (queries, *args[1:]), changed

    def scatter(module: nn.Module, args: Any, output: Any) -> Any:
        states = output[0]  # (b, K, d)
        return (states.reshape(-1, 1, states.shape[-1]), *output[1:])  # (b * K, 1, d)

    handles = [one.register_forward_pre_hook(gather, with_kwargs=True) for one in readers]
    handles += [one.register_forward_hook(scatter) for one in readers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
