#!/usr/bin/env python3
"""Train a base on one data-centre GPU in minutes: 2.7M tokens a second on an NVIDIA H200 with the bundled bases' shape.

It goes on from a base of ours, deepened, with the pairs that `tailormt base train` tokenised, and does what that command does,
laid out for a GPU: rows are packed by processes of their own, layers are compiled one by one, so that one compilation serves all,
weights of one kind lie in one tensor, and Muon orthogonalises all of them together.

    tailormt base train --source de --target en --init small-base --pairs … --minutes 0 -o run     # tokenises
    python bench/base_on_gpu.py run --start small-base --source de --target en --minutes 4.75 -o deep-base

Score the result with bench/bases.py.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

L = 128  # tokens of a row
LOWEST = -30_000.0
DECODER_ATTENTION = {"self_attn": "", "encoder_attn": "cross_"}
FEED_FORWARD = {"fc1": "first", "fc2": "second", "final_layer_norm": "last"}


# -- weights: those of one kind of all layers in one tensor


def parts(layer: Any, attentions: dict[str, str]) -> Iterator[tuple[str, list[Tensor]]]:
    """(kind, the weights of it) of a Marian layer; query, key and value are one kind of three matrices."""
    for attention, prefix in attentions.items():
        block, norm = getattr(layer, attention), getattr(layer, f"{attention}_layer_norm")
        for what in ("weight", "bias"):
            yield f"{prefix}qkv_{what}", [getattr(getattr(block, f"{name}_proj"), what) for name in "qkv"]
            yield f"{prefix}out_{what}", [getattr(block.out_proj, what)]
            yield f"{prefix}norm_{what}", [getattr(norm, what)]
    for name, kind in FEED_FORWARD.items():
        for what in ("weight", "bias"):
            yield f"{kind}_{what}", [getattr(getattr(layer, name), what)]


def sides(model: Any) -> list[tuple[str, Any, dict[str, str]]]:
    core = model.model
    return [("encoder", core.encoder.layers, {"self_attn": ""}), ("decoder", core.decoder.layers, DECODER_ATTENTION)]


def stacked(model: Any) -> dict[str, Tensor]:
    """The trained weights by side and kind, (layers, …) or for query, key and value (layers, 3, …); the embeddings (V, d)."""
    result = {"embeddings": model.model.shared.weight.detach().clone()}
    for side, layers, attentions in sides(model):
        rows = [dict(parts(layer, attentions)) for layer in layers]
        for kind, first in rows[0].items():
            each = [torch.stack([w.detach() for w in row[kind]]) if len(first) > 1 else row[kind][0].detach() for row in rows]
            result[f"{side}.{kind}"] = torch.stack(each)
    return result


def by_layer(weights: dict[str, Tensor]) -> dict[str, list[dict[str, Tensor]]]:
    """The stacked weights of each side, layer by layer, by their kind."""
    layers = {}
    for side in ("encoder", "decoder"):
        kinds = {k.split(".")[1]: w.unbind() for k, w in weights.items() if k.startswith(side)}
        layers[side] = [dict(zip(kinds, row, strict=True)) for row in zip(*kinds.values(), strict=True)]
    return layers


def unstack(weights: dict[str, Tensor], model: Any) -> None:
    """Put the weights back into the model."""
    with torch.no_grad():
        model.model.shared.weight.copy_(weights["embeddings"])
        for side, layers, attentions in sides(model):
            for index, layer in enumerate(layers):
                for kind, parameters in parts(layer, attentions):
                    new = weights[f"{side}.{kind}"][index]
                    for part, weight in enumerate(parameters):
                        weight.copy_(new[part] if len(parameters) > 1 else new)


# -- the model


def heads(x: Tensor, kinds: int) -> Tensor:
    rows, length, width = x.shape
    return x.view(rows, length, kinds, -1, min(64, width)).permute(2, 0, 3, 1, 4)  # (kinds, B, H, L, e)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, L, e)
    return mixed.transpose(1, 2).flatten(2)  # (B, L, d)


def update(x: Tensor, change: Tensor, dropout: float, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x + functional.dropout(change, dropout), weight.shape, weight, bias)  # (B, L, d)


def self_attention(x: Tensor, mask: Tensor, dropout: float, w: dict[str, Tensor]) -> Tensor:
    q, k, v = heads(functional.linear(x, w["qkv_weight"].flatten(0, 1), w["qkv_bias"].flatten()), 3)  # (B, H, L, e)
    out = functional.linear(attention(q, k, v, mask), w["out_weight"], w["out_bias"])  # (B, L, d)
    return update(x, out, dropout, w["norm_weight"], w["norm_bias"])


def feed_forward(x: Tensor, dropout: float, w: dict[str, Tensor]) -> Tensor:
    inner = functional.relu(functional.linear(x, w["first_weight"], w["first_bias"]))  # (B, L, f)
    out = functional.linear(inner, w["second_weight"], w["second_bias"])  # (B, L, d)
    return update(x, out, dropout, w["last_weight"], w["last_bias"])


def encoder_layer(x: Tensor, mask: Tensor, dropout: float, w: dict[str, Tensor]) -> Tensor:
    return feed_forward(self_attention(x, mask, dropout, w), dropout, w)


def decoder_layer(x: Tensor, encoded: Tensor, mask: Tensor, cross: Tensor, dropout: float, w: dict[str, Tensor]) -> Tensor:
    x = self_attention(x, mask, dropout, w)
    weight, bias = w["cross_qkv_weight"], w["cross_qkv_bias"]
    (q,) = heads(functional.linear(x, weight[0], bias[0]), 1)  # (B, H, L, e)
    k, v = heads(functional.linear(encoded, weight[1:].flatten(0, 1), bias[1:].flatten()), 2)  # (B, H, L, e)
    out = functional.linear(attention(q, k, v, cross), w["cross_out_weight"], w["cross_out_bias"])  # (B, L, d)
    x = update(x, out, dropout, w["cross_norm_weight"], w["cross_norm_bias"])
    return feed_forward(x, dropout, w)


def smoothed_loss(states: Tensor, table: Tensor, labels: Tensor, real: Tensor, smoothing: Tensor) -> Tensor:
    """Mean cross-entropy of the real tokens, in nats. The vocabulary is padded to whole tiles of the tensor cores."""
    words = len(table)
    padded = functional.pad(table.to(states.dtype), (0, 0, 0, -words % 64))  # (V', d)
    logits = (states.flatten(0, 1) @ padded.T).float()  # (B*L, V')
    is_word = torch.arange(len(padded), device=logits.device) < words  # (V',)
    total = torch.logsumexp(logits.masked_fill(~is_word, -1e9), -1)  # (B*L,)
    label = logits.gather(1, labels.view(-1, 1))[:, 0]  # (B*L,)
    uniform = total - (logits * is_word).sum(-1) / words  # (B*L,)
    loss = (1 - smoothing) * (total - label) + smoothing * uniform  # (B*L,)
    return (loss * real.flatten()).sum() / real.sum()


def visible(queries: Tensor, keys: Tensor, causal: bool, kind: torch.dtype) -> Tensor:
    seen = queries[:, :, None] == keys[:, None, :]  # (B, L, L)
    if causal:
        seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=seen.device).tril()  # (B, L, L)
    return torch.zeros(seen.shape, dtype=kind, device=seen.device).masked_fill_(~seen, LOWEST)[:, None]  # (B, 1, L, L)


def embed(table: Tensor, sinusoids: Tensor, words: Tensor, position: Tensor, dropout: float, kind: torch.dtype) -> Tensor:
    vectors = functional.embedding(words, table) * table.shape[1] ** 0.5 + functional.embedding(position, sinusoids)
    return functional.dropout(vectors.to(kind), dropout)  # (B, L, d)


class Network:
    """Loss of a batch under the live weights."""

    def __init__(self, model: Any, device: torch.device, dropout: float, compiled: bool) -> None:
        self.kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.sinusoids = model.model.encoder.embed_positions.weight.detach().to(device)
        self.dropout = dropout
        functions: list[Callable[..., Tensor]] = [encoder_layer, decoder_layer, smoothed_loss, visible, embed]
        if compiled:
            functions = [torch.compile(function, dynamic=False) for function in functions]
        self.encoder_layer, self.decoder_layer, self.smoothed_loss, self.visible, self.embed = functions

    def loss(self, batch: Tensor, live: dict[str, Tensor], smoothing: Tensor, training: bool) -> Tensor:
        source, segment, position, inputs, labels, target_segment, target_position = batch  # (B, L) each
        dropout = self.dropout if training else 0.0
        layers = by_layer(live)
        table = live["embeddings"]
        x = self.embed(table, self.sinusoids, source, position, dropout, self.kind)
        mask = self.visible(segment, segment, False, self.kind)
        for w in layers["encoder"]:
            x = self.encoder_layer(x, mask, dropout, w)
        y = self.embed(table, self.sinusoids, inputs, target_position, dropout, self.kind)
        mask, cross = (
            self.visible(target_segment, target_segment, True, self.kind),
            self.visible(target_segment, segment, False, self.kind),
        )
        for w in layers["decoder"]:
            y = self.decoder_layer(y, x, mask, cross, dropout, w)
        return self.smoothed_loss(y, table, labels, (target_segment > 0).float(), smoothing)


# -- the optimizer


class Optimizer:
    """Muon (Jordan et al. 2024) for the layers' matrices, all of one shape at once, AdamW for the rest; masters in float32."""

    def __init__(self, masters: dict[str, Tensor], rate: float, muon_rate: float) -> None:
        self.masters, self.rate, self.muon_rate, self.decay = masters, rate, muon_rate, 0.01
        self.matrices = [k for k, w in masters.items() if k.endswith("_weight") and "norm" not in k and "last" not in k]
        self.others = [k for k in masters if k not in self.matrices]
        self.momentum = {k: torch.zeros_like(masters[k]) for k in self.matrices}
        rest = [masters[k].requires_grad_() for k in self.others]
        self.adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=self.decay, fused=True)

    @torch.no_grad()
    def step(self, gradients: dict[str, Tensor], factor: float) -> None:
        norm = torch.nn.utils.get_total_norm(list(gradients.values()))
        torch._foreach_mul_(list(gradients.values()), torch.clamp(1 / (norm + 1e-6), max=1.0))
        for key in self.matrices:
            self._orthogonal_step(key, gradients[key], self.muon_rate * factor)
        for key in self.others:
            self.masters[key].grad = gradients[key]
        for group in self.adam.param_groups:
            group["lr"] = self.rate * factor
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def _orthogonal_step(self, key: str, gradient: Tensor, rate: float) -> None:
        momentum, master = self.momentum[key], self.masters[key]
        momentum.lerp_(gradient, 0.05)
        x = gradient.lerp(momentum, 0.95).reshape(-1, *gradient.shape[-2:]).bfloat16()  # (n, rows, columns)
        tall = x.shape[1] > x.shape[2]
        x = x.mT if tall else x
        x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
        for _ in range(5):  # Newton-Schulz
            square = x @ x.mT  # (n, rows, rows)
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.775, alpha=2.0315), x, beta=3.4445)
        x = (x.mT if tall else x).reshape(master.shape).float()
        rows, columns = master.shape[-2:]
        master.mul_(1 - rate * self.decay).add_(x, alpha=-rate * max(1.0, rows / columns) ** 0.5)


# -- batches


def pack_batches(number: int, workers: int, examples: Any, rows: int, queue: Any) -> None:
    """Put batches of every `workers`-th example into the queue, without end."""
    from engine.builders.bases.packing import order_of_epoch, pack_examples

    torch.set_num_threads(1)
    epoch = 0
    while True:
        order = order_of_epoch(examples, 3, epoch)[number::workers]
        waiting: list[list[int]] = []
        for begin in range(0, len(order), 24 * rows):
            waiting += pack_examples(examples, order[begin : begin + 24 * rows], L)
            np.random.default_rng((number, epoch, begin)).shuffle(waiting)
            while len(waiting) >= rows:
                queue.put(as_array(examples, waiting[:rows]))
                del waiting[:rows]
        epoch += 1


def as_array(examples: Any, rows: list[list[int]]) -> np.ndarray:
    """A packed batch as one array (7, B, L) of 16 bits, in the order of `Packed`."""
    from engine.builders.bases.packing import assemble

    return torch.stack(list(vars(assemble(examples, rows, L)).values())).numpy().astype(np.uint16)


def held_out_batches(files: list[Path], vocabulary: Any, rows: int) -> list[tuple[str, np.ndarray]]:
    """(file and direction, batch) of the first 600 pairs of each file; batches have `rows` rows, as compiled code wants them."""
    from engine.builders.bases.packing import encode_pairs, pack_examples
    from engine.builders.bases.pairs import read_held_out

    result = []
    for name, pairs in read_held_out(files).items():
        examples = encode_pairs(pairs[:600], [1.0] * len(pairs[:600]), vocabulary, 110)
        for way in (0, 1):
            packed = pack_examples(examples, np.arange(way, len(examples), 2), L)
            for begin in range(0, len(packed), rows):
                array = as_array(examples, packed[begin : begin + rows])
                blank = np.zeros((7, rows - array.shape[1], L), array.dtype)
                blank[[0, 3, 4]] = vocabulary.pad
                result.append((f"{name} {'back' if way else 'forth'}", np.concatenate([array, blank], 1)))
    return result


# -- the training


def train(args: argparse.Namespace) -> None:
    from engine.builders.bases.grow import grow_encoder
    from engine.builders.bases.network import load_model
    from engine.builders.bases.tokenised import open_pairs
    from engine.builders.bases.vocabulary import load_vocabulary

    begun = time.monotonic()
    vocabulary = load_vocabulary(args.start, args.source, args.target)
    examples = open_pairs(args.run / "training" / "pairs", vocabulary)
    provenance = json.loads((args.run / "training" / "provenance.json").read_text(encoding="utf-8"))
    examples.weights[:] = np.array([file["weight"] for file in provenance["files"]])[examples.file]
    context = multiprocessing.get_context("fork")  # before the first use of the GPU
    queue = context.Queue(maxsize=48)
    for number in range(args.workers):
        settings = (number, args.workers, examples, args.rows, queue)
        context.Process(target=pack_batches, args=settings, daemon=True).start()
    device = torch.device(args.device)
    torch.manual_seed(1)
    model = grow_encoder(load_model(args.start), args.encoder_layers, args.encoder_ffn)
    masters = {key: weight.to(device) for key, weight in stacked(model).items()}
    network = Network(model, device, args.dropout, device.type == "cuda")
    live = {k: (w.clone() if k == "embeddings" else w.to(network.kind)).requires_grad_() for k, w in masters.items()}
    average = {k: w.clone() for k, w in masters.items()}
    optimizer = Optimizer(masters, args.learning_rate, args.muon_rate)
    smoothing, none = torch.tensor(0.1, device=device), torch.tensor(0.0, device=device)
    held_out = held_out_batches(args.held_out, vocabulary, args.rows) if args.held_out else []

    def on_device(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.int32)).to(device, non_blocking=True).long()

    def validate(weights: dict[str, Tensor], title: str) -> None:
        with torch.no_grad():
            torch._foreach_copy_(list(live.values()), [w.detach() for w in weights.values()])
        sums: dict[str, Tensor] = {}
        for name, array in held_out:
            count = float((array[5] > 0).sum())
            loss = network.loss(on_device(array), live, none, False).detach().cpu() * count
            sums[name] = sums.get(name, torch.zeros(2)) + torch.tensor([float(loss), count])
        print(title, {name: round(float(total / count), 3) for name, (total, count) in sums.items()}, flush=True)

    validate(masters, "at the start")
    seconds, step, tokens, checked = 60 * args.minutes, 0, 0, time.monotonic()
    while (done := (time.monotonic() - begun) / seconds) < 1:
        factor = min(1.0, (step + 1) / 150) * min(1.0, (1 - done) / args.decay)
        array = queue.get()
        loss = network.loss(on_device(array), live, smoothing, True)
        loss.backward()
        gradients = {key: weight.grad.float() for key, weight in live.items() if weight.grad is not None}
        for weight in live.values():
            weight.grad = None
        optimizer.step(gradients, factor)
        with torch.no_grad():
            current = [w.detach() for w in masters.values()]
            torch._foreach_lerp_(list(average.values()), current, 1 - min(0.995, (1 + step) / (10 + step)))
            torch._foreach_copy_(list(live.values()), current)
        step, tokens = step + 1, tokens + int((array[1] > 0).sum() + (array[5] > 0).sum())
        if step % 50 == 0:
            print(f"update {step}, {tokens / 1e6:.1f}M tokens, loss {float(loss.detach()):.3f}", flush=True)
        if time.monotonic() - checked > args.check_every:
            validate(average, f"average after {tokens / 1e6:.0f}M tokens")
            with torch.no_grad():
                torch._foreach_copy_(list(live.values()), [w.detach() for w in masters.values()])
            checked = time.monotonic()
    validate(average, f"average after {tokens / 1e6:.0f}M tokens")
    model.config.dropout = args.dropout
    export(model, average, args.start, args.output)


def export(model: Any, weights: dict[str, Tensor], start: Path, output: Path) -> None:
    """Write the base in half precision, with the tokenizer and decoding defaults of the one it began from."""
    unstack({key: weight.cpu() for key, weight in weights.items()}, model)
    model.half().save_pretrained(output)
    for file in start.iterdir():
        if file.is_file() and file.name not in ("README.md", "config.json", "model.safetensors"):
            shutil.copy(file, output)


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("run", type=Path, help="output of `tailormt base train`, whose tokenised pairs and weights of files are used")
    top.add_argument("--start", type=Path, required=True, help="the base to go on from")
    top.add_argument("--source", required=True)
    top.add_argument("--target", required=True)
    top.add_argument("--held-out", type=Path, nargs="*", default=[], help="pairs whose loss is printed")
    top.add_argument("--minutes", type=float, default=4.75, help="of the clock, compiling included [4.75]")
    top.add_argument("--encoder-layers", type=int, default=12)
    top.add_argument("--encoder-ffn", type=int, default=2048)
    top.add_argument("--rows", type=int, default=512, help=f"rows of {L} tokens a side in a batch [512]")
    top.add_argument("--dropout", type=float, default=0.0)
    top.add_argument("--learning-rate", type=float, default=2e-3)
    top.add_argument("--muon-rate", type=float, default=0.02)
    top.add_argument("--decay", type=float, default=0.6, help="last share of the time, in which the rates fall to zero [0.6]")
    top.add_argument("--workers", type=int, default=10, help="processes that pack rows [10]")
    top.add_argument("--check-every", type=float, default=60.0, metavar="SECONDS")
    top.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    top.add_argument("-o", "--output", type=Path, required=True)
    train(top.parse_args())


if __name__ == "__main__":
    main()
