"""Recording the memory: one teacher-forced pass of the frozen base over all phrase pairs, in batches.

For a pair (x, y) of layer i (paper 1, section 4.2 and equations 1-2):
    source memory   mean over the tokens of x of the encoder output E
    target memory   mean over the tokens of y of the self-attention output S(i)
The tokens of a phrase are its subwords, without end of sentence, padding and language tags. A target token is taken at the
position where it is the decoder's input: the position that predicts it does not depend on it, and for single-token phrases
would store the same vector for every phrase.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.model import BaseModel
from engine.base.onednn import fast_products
from engine.core.oom import HalveOnOom
from engine.core.progress import Progress
from engine.decoding.translate import length_batches
from engine.memory.phrase_pairs import PhrasePair
from engine.memory.store import Memory, save_memory

if TYPE_CHECKING:
    import torch

POOLING = ("mean", "sum_with_eos")


def pool(states: torch.Tensor, weights: torch.Tensor, pooling: str) -> torch.Tensor:
    """Mean or sum of states (B, T, d) over positions whose weight (B, T) is 1."""
    total = (states * weights[..., None]).sum(1)  # (B, d)
    if pooling == "sum_with_eos":
        return total
    return total / weights.sum(1, keepdim=True).clamp(min=1)  # (B, d)


def record(
    base: BaseModel,
    pairs: Sequence[PhrasePair],
    path: Path,
    *,
    pooling: str = "mean",
    batch_tokens: int | None = None,
    progress: Progress | None = None,
) -> Memory:
    """Run the pairs through the frozen base and write `memory.safetensors`.

    `pooling="sum_with_eos"` follows the released code: the sum, end of sentence included. `batch_tokens` defaults to the
    base's. Rows of a layer's tensors are in the order of the layer's pairs.
    """
    import torch

    progress = progress or Progress()
    layers = base.decoder_layers
    sources, targets = base.encode([pair.source for pair in pairs]), base.encode_target([pair.target for pair in pairs])
    special = torch.tensor(sorted(base.special_ids), device=base.device)  # (K,)
    states: dict[int, torch.Tensor] = {}
    source_rows = torch.zeros(len(pairs), base.d_model)  # (N, d)
    target_rows = torch.zeros(len(pairs), base.d_model)  # (N, d)
    done = 0

    def keep(layer: int) -> object:
        def hook(module: object, args: object, output: tuple[torch.Tensor, ...]) -> None:
            states[layer] = output[0]

        return hook

    with fast_products(base), base.using(None), torch.no_grad():
        handles = [layer.self_attn.register_forward_hook(keep(i)) for i, layer in enumerate(layers)]
        try:

            def pass_through(rows: list[int]) -> None:
                states.clear()
                inputs = base.pad_batch([sources[i][: base.max_tokens] for i in rows])  # (B, S)
                labels = base.pad_batch([targets[i][: base.max_tokens] for i in rows])  # (B, T)
                mask, encoded = base.mask(inputs), base.encoder_states(inputs)  # (B, S), (B, S, d)
                shifted = base.shift_right(labels)  # (B, T)
                base.model.get_decoder()(
                    input_ids=shifted, encoder_hidden_states=encoded, encoder_attention_mask=mask, use_cache=False
                )
                if pooling == "sum_with_eos":
                    of_source, of_target = mask.float(), (labels != base.pad).float()  # (B, S), (B, T)
                else:
                    of_source = torch.isin(inputs, special, invert=True).float()  # (B, S)
                    of_target = torch.isin(shifted, special, invert=True).float()  # (B, T)
                source_rows[rows] = pool(encoded, of_source, pooling).float().cpu()  # (B, d)
                for layer in range(len(layers)):
                    members = [k for k, i in enumerate(rows) if pairs[i].layer == layer]
                    if members:
                        pooled = pool(states[layer][members], of_target[members], pooling)  # (b, d)
                        target_rows[[rows[k] for k in members]] = pooled.float().cpu()
                states.clear()

            fit, lengths = HalveOnOom("batch_tokens"), [len(a) + len(b) for a, b in zip(sources, targets, strict=True)]
            for rows in length_batches(lengths, batch_tokens or base.batch_tokens):
                fit.run(rows, pass_through)
                done += len(rows)
                progress.advance(done, len(pairs))
        finally:
            for handle in handles:
                handle.remove()
    tensors = {}
    for layer in range(len(layers)):
        members = [i for i, pair in enumerate(pairs) if pair.layer == layer]
        tensors[layer] = (target_rows[members], source_rows[members])  # (N_layer, d) each
    save_memory(path, tensors, base_fingerprint=base.fingerprint(), pooling=pooling)
    return Memory(path)
