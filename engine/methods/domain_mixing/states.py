"""The states of each token at every layer of a base, by teacher forcing, on which proportions are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.decoding.translate import length_batches
from engine.methods.domain_mixing.input_hooks import proportion_layer_counts, watching

BATCH = 2048  # padded tokens per forward pass
LARGEST = 6e4  # within the range of float16


@dataclass
class TokenStates:
    """All real tokens of one side: `states[position]` (n, d), the sentence index of each token (n,), and its id (n,)."""

    states: list[Tensor]
    sentence: Tensor
    ids: Tensor


def real_tokens(base: BaseModel, ids: Tensor) -> Tensor:
    """Mask (B, T) of the text's tokens, including unknown ones, but not language codes, start, end and padding."""
    unknown = base.tokenizer.unk_token_id
    special = torch.tensor(sorted(base.special_ids - {unknown}), device=ids.device)
    return ~torch.isin(ids, special)  # (B, T)


@torch.no_grad()
def collect(
    base: BaseModel, sources: Sequence[Sequence[int]] | None, labels: Sequence[Sequence[int]] | None, *,
    half: bool = True, progress: Progress | None = None,
) -> dict[str, TokenStates]:  # fmt: skip
    """The states of all tokens by side, in the order of the sentences.

    With only `sources`: the encoder's states; with `labels` in addition: also the decoder's; with only `labels`: the decoder's over
    an empty source. Everything attached to the base takes effect. `half` stores states as float16, which suffices for fitting.
    """
    progress = progress or Progress()
    rows = labels if labels is not None else sources
    assert rows is not None
    lengths = [max(len(row), len(sources[i]) if sources is not None else 0) for i, row in enumerate(rows)]
    empty = base.encode([""])[0] if sources is None else []
    result: dict[str, list[tuple[Tensor, Tensor, list[Tensor]]]] = {}
    done = 0
    for batch in length_batches(lengths, BATCH):
        progress.advance(done, len(rows))
        inputs = base.pad_batch([sources[i] for i in batch]) if sources is not None else base.pad_batch([empty])  # (B, S)
        targets = base.pad_batch([labels[i] for i in batch]) if labels is not None else None  # (B, T)
        for side, ids, states in run(base, inputs, targets):
            if side == "encoder" and sources is None:
                continue
            real = real_tokens(base, ids)  # (B, T)
            where = torch.tensor(batch, device=ids.device)[:, None].expand_as(ids)[real]  # (n,)
            selected = [state[real].clamp(-LARGEST, LARGEST).half() if half else state[real] for state in states]  # (n, d) each
            result.setdefault(side, []).append((where, ids[real], selected))
        done += len(batch)
    progress.advance(len(rows), len(rows))
    return {side: joined(parts) for side, parts in result.items()}


def joined(parts: list[tuple[Tensor, Tensor, list[Tensor]]]) -> TokenStates:
    """Concatenate batches and sort the tokens by sentence."""
    sentence = torch.cat([part[0] for part in parts])  # (n,)
    order = torch.argsort(sentence, stable=True)  # (n,)
    ids = torch.cat([part[1] for part in parts])[order]  # (n,)
    states = [torch.cat(layer)[order] for layer in zip(*(part[2] for part in parts), strict=True)]  # (n, d) each
    return TokenStates(states, sentence[order], ids)


def run(base: BaseModel, inputs: Tensor, labels: Tensor | None) -> list[tuple[str, Tensor, list[Tensor]]]:
    """(side, token ids (B, T), states (B, T, d) of each position) of a forward pass of encoder and decoder.

    A source with one row is used for all rows. The decoder's tokens are its inputs, so their states predict the next tokens.
    """
    recorded: dict[tuple[str, int], Tensor] = {}

    def observe(side: str, layer: int, states: Tensor) -> None:
        recorded[side, layer] = states

    with watching(base, observe):
        encoded = base.encoder_states(inputs)  # (B, S, d)
        sides = [("encoder", inputs)]
        if labels is not None:
            before = base.shift_right(labels)  # (B, T)
            rows = len(labels) // len(inputs)
            base.model.get_decoder()(
                input_ids=before,
                encoder_hidden_states=encoded.repeat_interleave(rows, 0),
                encoder_attention_mask=base.mask(inputs).repeat_interleave(rows, 0),
                use_cache=False,
            )
            sides.append(("decoder", before))
    counts = proportion_layer_counts(base)
    return [(side, ids, [recorded[side, i] for i in range(counts[side])]) for side, ids in sides]
