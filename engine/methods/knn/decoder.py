"""A datastore with its index and settings, attached to a base for the duration of a call.

It hooks the output layer, since the layer's input is the key and its output the logits. This covers scoring, greedy search and
beam search, with one datastore search per step for all beams of all sentences.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from engine.base import BaseModel
from engine.errors import BundleError
from engine.memory.self_match import OwnText
from engine.memory.source_index import FILE as SOURCES
from engine.methods.interface import Batch
from engine.methods.knn.adaptive import limited, load_adaptive, save_adaptive
from engine.methods.knn.datastore import TENSORS, TEXTS, Datastore
from engine.methods.knn.forced_decoding import StateCapture, output_bias
from engine.methods.knn.gate import FILE as GATE
from engine.methods.knn.gate import NeighbourGate
from engine.methods.knn.index import FILE, make_search, open_index, save_index
from engine.methods.knn.interpolate import masses, mix
from engine.methods.knn.options import KnnOptions
from engine.methods.knn.sentence import SentenceReader
from engine.methods.reading import encode_pair, force, row

FILES = (TENSORS, TEXTS, SOURCES, GATE, "datastore.faiss", "adaptive.safetensors")  # the datastore's files in a bundle


class Knn:
    """kNN decoding with fixed settings. After tuning, all open settings such as `k` and `weight` are set in `options`."""

    def __init__(
        self, datastore: Datastore, index: Any, options: KnnOptions, device: Any, adaptive: Any = None,
        gate: NeighbourGate | None = None,
    ) -> None:  # fmt: skip
        self.datastore, self.index, self.options = datastore, index, options
        self.adaptive = adaptive.to(device) if adaptive is not None else None
        self.tokens = datastore.tokens.to(device, torch.int64)  # (N,)
        self.reader: SentenceReader | None = None
        self.search: Any = None
        if options.retrieval == "sentence":
            self.reader = SentenceReader(datastore, options, device, gate)
        else:
            keys = datastore.vectors() if datastore.keys is not None else None  # (N, d)
            self.search = make_search(options.index, index, keys, device, options)
        self.recorded: dict[str, torch.Tensor] | None = None  # filled while reads are being recorded
        self._own: OwnText | None = None

    @classmethod
    def open(cls, folder: Path, base: BaseModel, options: KnnOptions) -> Knn:
        """Open kNN decoding from a bundle and check it against the base. Raises BundleError, or MissingError without faiss."""
        by_sentence = options.retrieval == "sentence"
        gated = by_sentence and options.threshold is None and options.temperature is None  # by a learned gate
        needed = [options.k, options.weight]
        needed += [] if gated else [options.temperature]
        needed += [options.shortlist] if by_sentence else []
        needed += [options.threshold] if by_sentence and not gated else []
        if options.index == "auto" or None in needed:
            raise BundleError("its kNN settings are not complete. Get a new copy of the bundle.")
        vocabulary = int(base.model.config.vocab_size)
        if by_sentence:
            datastore = Datastore.open(folder, base.d_model, vocabulary, with_sources=True)
            return cls(datastore, None, options, base.device, gate=NeighbourGate.open(folder) if gated else None)
        datastore = Datastore.open(folder, base.d_model, vocabulary)
        keys = datastore.vectors() if datastore.keys is not None else None  # (N, d)
        index = open_index(folder / FILE, options.index, keys, len(datastore), base.d_model, options)
        if options.adaptive and int(options.k or 1) > len(datastore):
            raise BundleError("its kNN settings name more neighbours than its datastore has. Get a new copy of the bundle.")
        network = load_adaptive(folder, int(options.k or 1)) if options.adaptive else None
        return cls(datastore, index, options, base.device, network)

    @property
    def gate(self) -> NeighbourGate | None:
        """The learned gate of retrieval by sentence, if any."""
        return self.reader.gate if self.reader is not None else None

    def with_settings(self, options: KnnOptions, adaptive: Any = None, gate: NeighbourGate | None = None) -> Knn:
        """A copy with the same datastore and index but other settings of the mixture."""
        other = copy.copy(self)
        other.options = options
        other.adaptive = adaptive.to(self.tokens.device) if adaptive is not None else None
        other.reader = self.reader.with_settings(options, gate) if self.reader is not None else None
        return other

    def forget_keys(self) -> None:
        """Discard the keys and search with the index's codes only (ivfpq)."""
        self.datastore.keys = None
        self.search = make_search(self.options.index, self.index, None, self.tokens.device, self.options)

    def save(self, folder: Path) -> dict[str, Path]:
        """Write the files for a bundle. Returns their paths by name."""
        folder.mkdir(parents=True, exist_ok=True)
        by_sentence = self.reader is not None
        files = self.datastore.save(
            folder, keep_keys=by_sentence or self.options.keep_keys or self.options.index != "ivfpq", with_sources=by_sentence
        )
        if self.index is not None:
            save_index(self.index, self.options.index, folder / FILE)
            files[FILE] = folder / FILE
        if self.adaptive is not None:
            file = save_adaptive(self.adaptive, folder)
            files[file.name] = file
        if self.gate is not None:
            file = self.gate.save(folder)
            files[file.name] = file
        return files

    def look_up(self, queries: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Squared distances, tokens and entries (R, k) of the nearest keys for queries (R, d)."""
        distances, rows = self.search(queries.float(), k)  # (R, k), (R, k)
        return distances, self.tokens[rows], rows

    def masses(self, distances: torch.Tensor, tokens: torch.Tensor, strength: float = 1.0) -> torch.Tensor:
        """The probability mass (R, k) of each neighbour, scaled by `strength`; rows sum to at most `MOST_WEIGHT`."""
        options = self.options
        temperature = options.temperature or 1.0
        if self.adaptive is not None:
            return limited(strength * self.adaptive(distances, tokens, temperature))  # (R, k)
        return masses(distances, temperature, strength * (options.weight or 0.0))  # (R, k)

    def set_source(self, base: BaseModel, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """Shortlist samples for the source tokens (B, S) of the next batch (retrieval by sentence). In training, a sentence
        retrieves neither itself nor near-duplicates (decision 0009).
        """
        if self.reader is None:
            return
        rows = [[i for i in row if i != base.pad] for row in sources.tolist()]
        blocked = None
        if batch is not None and self.datastore.texts:
            if self._own is None:
                self._own = OwnText([target for _, target in self.datastore.texts], [s for s, _ in self.datastore.texts])
            pairs = [batch.pairs.sentences[i] for i in batch.rows]
            blocked = [sorted(self._own.of(pair.source, pair.target)) for pair in pairs]
        self.reader.set_source(base, rows, blocked)

    @contextlib.contextmanager
    def attach(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """Hook the base's output layer for the duration of the block; no-op if the share of the neighbours is 0."""
        if strength == 0.0 or (self.adaptive is None and not self.options.weight):
            yield
            return
        if self.reader is not None:
            with self.reader.attach(base, strength, self.recorded):
                yield
            return
        head = base.model.get_output_embeddings()
        bias = output_bias(base)
        with (
            StateCapture(base, self.options.keys) as tap,
            head.register_forward_hook(lambda _, args, logits: self.interpolate(tap.states, logits, bias, strength)),
        ):
            yield

    def interpolate(self, states: torch.Tensor, logits: torch.Tensor, bias: torch.Tensor | None, strength: float) -> torch.Tensor:
        """The logits (…, V) of the mixture at positions with keys `states` (…, d). Raises ValueError if there are not as many
        keys as logits, which happens with keys of a feed-forward layer if logits are computed at some positions only.
        """
        flat = logits.view(-1, logits.shape[-1])  # (R, V)
        queries = states.detach().reshape(-1, states.shape[-1])  # (R, d)
        if len(queries) != len(flat):
            raise ValueError("keys of the feed-forward layer need logits at all positions")
        k = min(self.options.k or 1, len(self.datastore))
        ask = None
        if self.options.skip_above < 1:
            full_logits = flat.float() if bias is None else flat.float() + bias  # (R, V)
            sure = (full_logits.max(-1).values - full_logits.logsumexp(-1)).exp() >= self.options.skip_above  # (R,)
            ask = (~sure).nonzero()[:, 0]  # (r,)
            if not len(ask):
                return logits
            queries = queries[ask]  # (r, d)
        distances, tokens, rows = self.look_up(queries, k)  # (r, k) each
        mass = self.masses(distances, tokens, strength)  # (r, k)
        if self.recorded is not None:
            self.recorded = {"distances": distances, "rows": rows, "mass": mass}
            if ask is not None:
                self.recorded["ask"] = ask
        if ask is None:
            return mix(flat, tokens, mass, bias).view_as(logits)
        part = mix(flat[ask], tokens, mass, bias)  # (r, V)
        if flat.requires_grad:
            return flat.index_copy(0, ask, part).view_as(logits)
        return flat.index_copy_(0, ask, part).view_as(logits)

    def attributions(self, base: BaseModel, source: str, translation: str, top: int) -> list[dict[str, object]]:
        """The neighbours of each target token with their share of p_kNN. The plugin's method, if any, is already attached."""
        sources, labels, tokens = encode_pair(base, source, translation)  # (1, S), (1, T)
        try:
            self.recorded = {}
            self.set_source(base, sources)
            with self.attach(base):
                force(base, sources, labels)
            recorded = self.recorded
        finally:
            self.recorded = None
        if not recorded:
            return []
        positions = recorded["ask"].tolist() if "ask" in recorded else range(len(tokens))
        rows = []
        for index, position in enumerate(positions):
            mass = recorded["mass"][index]  # (k,)
            share = float(mass.sum())
            best = mass.topk(min(top, len(mass))).indices.tolist()
            items = [self.item(base, recorded, index, i, share) for i in best if float(mass[i]) > 0]
            rows.append(row(position, tokens[position], -1, "datastore", 1 - share, items))
        return rows

    def item(
        self, base: BaseModel, recorded: dict[str, torch.Tensor], index: int, neighbour: int, share: float
    ) -> dict[str, object]:
        entry = int(recorded["rows"][index, neighbour])
        source, target = self.datastore.sentence(entry)
        return {
            "text": target,
            "source": source,
            "weight": float(recorded["mass"][index, neighbour]) / share,
            "token": base.tokenizer.convert_ids_to_tokens([int(self.tokens[entry])])[0],
            "distance": float(recorded["distances"][index, neighbour]),
            "at": int(self.datastore.positions[entry]),
            "row": entry,
        }
