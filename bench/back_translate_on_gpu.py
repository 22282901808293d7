#!/usr/bin/env python3
"""Translate monolingual text with a base on a data-centre GPU, as pairs for `base_on_gpu.py`.

    python bench/back_translate_on_gpu.py run mono --start assets/models/en-zh --source en --target zh -o run-with-bt

`run` holds the tokenised pairs of `tailormt base train`, `mono` texts of one language each, tokenised by the base's vocabulary:
`NAME.pieces.npy` (pieces one after another), `NAME.lengths.npy`, and `mono.json` with [name, language, weight, translations to
draw] of each. A sentence is translated by the likeliest words, and some times by drawing words; the translation is kept that
makes the sentence likeliest when it is translated back (as in noisy-channel reranking, Yee et al. 2019), and tagged.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from base_on_gpu import LOWEST, by_layer, decoder_layer, embed, encoder_layer, feed_forward, heads, stacked, update
from torch import Tensor
from torch.nn import functional

EOS = 0
TEMPERATURE = 0.6  # at which words are drawn
SOURCE_TOKENS = 160_000  # of a batch
FEWEST_SHARE, MOST_SHARE = 0.35, 2.2  # tokens of a translation over those of the sentence, beyond five


@dataclass
class Translator:
    """A base's weights on the device, layer by layer."""

    encoder: list[dict[str, Tensor]]
    decoder: list[dict[str, Tensor]]
    table: Tensor  # (V, d)
    positions: Tensor  # (P, d)
    pad: int
    tags: dict[str, int]

    @classmethod
    def load(cls, model: Any, vocabulary: Any, device: torch.device) -> Translator:
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        weights = {key: w.to(device, kind) for key, w in stacked(model).items()}
        layers = by_layer(weights)
        positions = model.model.encoder.embed_positions.weight.detach().to(device, kind)
        return cls(layers["encoder"], layers["decoder"], weights["embeddings"], positions, vocabulary.pad, vocabulary.tags)

    @property
    def kind(self) -> torch.dtype:
        return self.table.dtype

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states (B, S, d), mask (B, 1, 1, S)) of padded source pieces, each row with its tag and end."""
        mask = torch.zeros(source.shape, dtype=self.kind, device=source.device)
        mask = mask.masked_fill_(source == self.pad, LOWEST)[:, None, None]  # (B, 1, 1, S)
        places = torch.arange(source.shape[1], device=source.device).expand_as(source)  # (B, S)
        x = embed(self.table, self.positions, source, places, 0.0, self.kind)  # (B, S, d)
        for w in self.encoder:
            x = encoder_layer(x, mask, 0.0, w)
        return x, mask

    def translate(self, source: Tensor, longest: int, drawn: Tensor | None) -> Tensor:
        """(B, longest) pieces of the translations, EOS at and after the end of each; `drawn` (B,) marks rows that are sampled."""
        x, mask = self.encode(source)
        rows, device = len(source), source.device
        crosses, caches = [], []
        for w in self.decoder:
            weight, bias = w["cross_qkv_weight"], w["cross_qkv_bias"]
            keys_values = functional.linear(x, weight[1:].flatten(0, 1), bias[1:].flatten())  # (B, S, 2d)
            crosses.append(heads(keys_values, 2))  # (2, B, H, S, e)
            caches.append(torch.zeros(2, rows, x.shape[2] // 64, longest, 64, dtype=self.kind, device=device))
        word = torch.full((rows, 1), self.pad, device=device)  # (B, 1)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        result = torch.full((rows, longest), EOS, device=device)
        for step in range(longest):
            y = embed(self.table, self.positions, word, torch.full_like(word, step), 0.0, self.kind)  # (B, 1, d)
            for w, cross, cache in zip(self.decoder, crosses, caches, strict=True):
                qkv = functional.linear(y, w["qkv_weight"].flatten(0, 1), w["qkv_bias"].flatten())  # (B, 1, 3d)
                q, k, v = heads(qkv, 3)  # (B, H, 1, e)
                cache[0, :, :, step : step + 1], cache[1, :, :, step : step + 1] = k, v
                k, v = cache[:, :, :, : step + 1]  # (B, H, step + 1, e)
                seen = read(q, k, v, None)  # (B, 1, d)
                out = functional.linear(seen, w["out_weight"], w["out_bias"])  # (B, 1, d)
                y = update(y, out, 0.0, w["norm_weight"], w["norm_bias"])
                (q,) = heads(functional.linear(y, w["cross_qkv_weight"][0], w["cross_qkv_bias"][0]), 1)
                seen = read(q, cross[0], cross[1], mask)  # (B, 1, d)
                out = functional.linear(seen, w["cross_out_weight"], w["cross_out_bias"])  # (B, 1, d)
                y = update(y, out, 0.0, w["cross_norm_weight"], w["cross_norm_bias"])
                y = feed_forward(y, 0.0, w)
            scores = y[:, 0] @ self.table.T  # (B, V)
            scores[:, self.pad] = LOWEST
            if drawn is not None:
                noise = torch.empty(scores.shape, device=device).exponential_().log_()  # (B, V) minus Gumbel's
                scores = torch.where(drawn[:, None], scores - TEMPERATURE * noise, scores.float())
            word = scores.argmax(1, keepdim=True).masked_fill(done[:, None], EOS)  # (B, 1)
            result[:, step] = word[:, 0]
            done |= word[:, 0] == EOS
            if step % 8 == 7 and bool(done.all()):
                break
        return result

    def log_likelihood(self, source: Tensor, target: Tensor) -> Tensor:
        """(B,) log-probability of padded target pieces, each with its end, given the source."""
        x, mask = self.encode(source)
        size = target.shape[1]
        causal = torch.full((size, size), LOWEST, dtype=self.kind, device=source.device).triu(1)  # (T, T)
        inputs = functional.pad(target[:, :-1], (1, 0), value=self.pad)  # (B, T)
        places = torch.arange(size, device=source.device).expand_as(target)  # (B, T)
        y = embed(self.table, self.positions, inputs, places, 0.0, self.kind)  # (B, T, d)
        for w in self.decoder:
            y = decoder_layer(y, x, causal[None, None], mask, 0.0, w)
        result = torch.zeros(len(source), device=source.device)
        for begin in range(0, len(source), 1024):
            part = slice(begin, begin + 1024)
            scores = (y[part] @ self.table.T).float()  # (b, T, V)
            labels = target[part]
            each = scores.gather(2, labels[:, :, None])[:, :, 0] - scores.logsumexp(2)  # (b, T)
            result[part] = (each * (labels != self.pad)).sum(1)
        return result


def read(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """(B, 1, d) what one query a row reads; by plain products, since fused kernels are planned anew for each length."""
    scores = q @ k.mT * q.shape[-1] ** -0.5  # (B, H, 1, S)
    weights = (scores if mask is None else scores + mask).softmax(-1)  # (B, H, 1, S)
    return (weights @ v).transpose(1, 2).flatten(2)  # (B, 1, d)


def padded(sentences: list[np.ndarray], begin: list[int], pad: int, device: torch.device) -> Tensor:
    """(B, L) pieces, `begin` before each and the end after it."""
    size = len(begin) + 1 + max(map(len, sentences))
    array = np.full((len(sentences), size), pad, dtype=np.int64)
    for row, sentence in zip(array, sentences, strict=True):
        row[: len(begin)] = begin
        row[len(begin) : len(begin) + len(sentence)] = sentence
        row[len(begin) + len(sentence)] = EOS
    return torch.from_numpy(array).to(device)


def translations(
    model: Translator, sentences: list[np.ndarray], languages: tuple[str, str], samples: int, until: float = np.inf
) -> tuple[list[np.ndarray | None], np.ndarray]:
    """(the best translation of each sentence or None, log-probability a token of the sentence given it).

    `languages`: of the sentences, of the translations. None: all translations are odd, or the clock was past `until`.
    """
    device = model.table.device
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    batches = []
    while order:
        size = max(16, SOURCE_TOKENS // (1 + samples) // (len(sentences[order[0]]) + 4))
        batches.append(order[:size])
        del order[:size]
    random.Random(1).shuffle(batches)
    results: list[np.ndarray | None] = [None] * len(sentences)
    scores = np.full(len(sentences), -np.inf)
    for chosen in batches:
        if time.monotonic() > until:
            break
        batch = [sentences[i] for i in chosen]
        sizes = torch.tensor([len(s) for s in batch], device=device).repeat(1 + samples)  # (n·B,)
        source = padded(batch, [model.tags[languages[1]]], model.pad, device).repeat(1 + samples, 1)  # (n·B, S)
        drawn = torch.arange(len(source), device=device) >= len(batch) if samples else None
        output = model.translate(source, int(1.5 * max(map(len, batch))) + 10, drawn)  # (n·B, T)
        ends = torch.where((output == EOS).any(1), (output == EOS).int().argmax(1), 0)  # (n·B,)
        places = torch.arange(output.shape[1], device=device)  # (T,)
        output = output.masked_fill(places > ends[:, None], model.pad)
        tag = torch.full_like(output[:, :1], model.tags[languages[0]])
        inputs = torch.cat([tag, output], 1)[:, : int(ends.max()) + 2]  # (n·B, T')
        targets = padded(batch, [], model.pad, device).repeat(1 + samples, 1)  # (n·B, S')
        parts = zip(inputs.split(2048), targets.split(2048), strict=True)
        likely = torch.cat([model.log_likelihood(*part) for part in parts])  # (n·B,)
        likely = likely.masked_fill(~are_sound(output, ends, sizes), -np.inf).view(1 + samples, -1)  # (n, B)
        score, best = likely.max(0)  # (B,)
        rows = best * len(batch) + torch.arange(len(batch), device=device)
        for i, row, end, value in zip(
            chosen, output[rows].cpu().numpy().astype(np.uint16), ends[rows].tolist(), score.tolist(), strict=True
        ):
            if value > -np.inf:
                results[i], scores[i] = row[:end], value / (len(sentences[i]) + 1)
    return results, scores


def are_sound(output: Tensor, ends: Tensor, sizes: Tensor) -> Tensor:
    """(B,) whether a translation's length is plausible for its sentence of `sizes` pieces and no three pieces come three times."""
    plausible = (ends > 0) & (ends < MOST_SHARE * sizes + 5) & (ends > FEWEST_SHARE * sizes - 5)  # (B,)
    triples = output[:, :-2] * 2**40 + output[:, 1:-1] * 2**20 + output[:, 2:]  # (B, T-2)
    places = torch.arange(triples.shape[1], device=output.device)  # (T-2,)
    triples = torch.where(places < ends[:, None] - 2, triples, -1 - places).sort(1).values
    return plausible & ~(triples[:, 2:] == triples[:, :-2]).any(1)


def split(pieces: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    return np.split(pieces, np.cumsum(lengths)[:-1]) if len(lengths) else []


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("run", type=Path, help="output of `tailormt base train`: its tokenised pairs are taken over")
    top.add_argument("mono", type=Path)
    top.add_argument("--start", type=Path, required=True, help="the base that translates")
    top.add_argument("--source", required=True)
    top.add_argument("--target", required=True)
    top.add_argument("--drop", type=float, default=0.1, help="share of each text left out, the least likely [0.1]")
    top.add_argument("--seconds", type=float, default=np.inf, help="after which what is not yet translated is left out")
    top.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    top.add_argument("-o", "--output", type=Path, required=True)
    back_translate(top.parse_args())


@torch.no_grad()
def back_translate(args: argparse.Namespace) -> None:
    from engine.builders.bases.network import load_model
    from engine.builders.bases.vocabulary import load_vocabulary

    vocabulary, device = load_vocabulary(args.start, args.source, args.target), torch.device(args.device)
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for each length
    model = Translator.load(load_model(args.start), vocabulary, device)
    languages = (args.source, args.target)
    record = json.loads((args.run / "training" / "pairs" / "pairs.json").read_text(encoding="utf-8"))
    provenance = json.loads((args.run / "training" / "provenance.json").read_text(encoding="utf-8"))
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    of: list[int] = []

    until = time.monotonic() + args.seconds
    for name, language, weight, samples in json.loads((args.mono / "mono.json").read_text(encoding="utf-8")):
        begun = time.monotonic()
        sentences = split(np.load(args.mono / f"{name}.pieces.npy"), np.load(args.mono / f"{name}.lengths.npy"))
        side = languages.index(language)
        best, scores = translations(model, sentences, (language, languages[1 - side]), samples, until)
        if not np.isfinite(scores).any():
            continue
        least = float(np.quantile(scores[np.isfinite(scores)], args.drop))
        number, count = len(record["made_of"]["files"]), 0
        for sentence, translation, score in zip(sentences, best, scores, strict=True):
            if translation is not None and score >= least:
                sides[side].append(np.array([*sentence, EOS], dtype=np.uint16))
                sides[1 - side].append(np.array([vocabulary.synthetic, *translation, EOS], dtype=np.uint16))
                count += 1
        of += [number] * count
        record["made_of"]["files"].append([name, 0, 0, languages[1 - side]])
        provenance["files"].append({"file": name, "weight": weight})
        print(f"{name}: {count:,} of {len(sentences):,} in {time.monotonic() - begun:.0f} s", flush=True)
    write(args.run, args.output, sides, of, record, provenance)


def write(run: Path, output: Path, sides: Any, of: list[int], record: Any, provenance: Any) -> None:
    """The pairs of `run` and the new ones, as `base_on_gpu.py` reads them."""
    old, new = run / "training" / "pairs", output / "training" / "pairs"
    new.mkdir(parents=True)
    for name, sentences in zip(("source", "target"), sides, strict=True):
        np.save(new / f"{name}.pieces.npy", np.concatenate([np.load(old / f"{name}.pieces.npy"), *sentences]))
        starts = np.load(old / f"{name}.starts.npy")
        more = starts[-1] + np.cumsum([len(sentence) for sentence in sentences])
        np.save(new / f"{name}.starts.npy", np.concatenate([starts, more]).astype(np.int64))
    np.save(new / "file.npy", np.concatenate([np.load(old / "file.npy"), of]).astype(np.uint16))
    for path, content in ((new / "pairs.json", record), (output / "training" / "provenance.json", provenance)):
        path.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main()
