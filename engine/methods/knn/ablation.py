"""Replacements for a datastore that show whether its content matters, for kNN-MT and for plugins with a datastore."""

from __future__ import annotations

import dataclasses

from engine.base import BaseModel
from engine.methods.ablation import Material, UnavailableError, evenly_spaced, gaussian_like
from engine.methods.knn.build import replacement
from engine.methods.knn.decoder import Knn
from engine.methods.knn.index import build_index
from engine.methods.trained import TrainedMethod

MOST = 1024  # entries that represent the single mean row


def another_datastore(base: BaseModel, knn: Knn, kind: str, material: Material, plugin: TrainedMethod | None = None) -> Knn:
    """`knn` with a datastore of that kind under the same settings; keys are recorded with `plugin` attached, if any.

    Tokens have no mean, so the mean row is represented by entries that share its key and have the distribution of all tokens.
    Raises UnavailableError if the bundle does not contain the keys.
    """
    options, store = knn.options, knn.datastore
    if kind == "empty":
        return knn.with_settings(options.replace(weight=0.0, adaptive=False), gate=knn.gate)
    if kind in ("foreign", "oracle"):
        return replacement(base, knn, material.pairs(kind), material.folder(kind), material.progress, plugin)[0]
    if kind == "shuffled":
        mixed = dataclasses.replace(store, tokens=store.tokens[material.order(len(store))])
        return Knn(mixed, knn.index, options, base.device, knn.adaptive, knn.gate)
    if store.keys is None:
        raise UnavailableError(
            "The bundle contains the codes of the keys and not the keys (keep_keys=no), so there is no such mean."
        )
    vectors = store.vectors()  # (N, d)
    if kind == "noise":
        keys = gaussian_like(vectors, len(store), material.generator()).to(vectors)  # (N, d)
        index = None if knn.reader is not None else build_index(keys, options.index, options)
        return Knn(dataclasses.replace(store, keys=keys), index, options, base.device, knn.adaptive, knn.gate)
    mean = vectors.float().mean(0, keepdim=True).to(vectors)  # (1, d)
    if knn.reader is not None:  # the shortlist still selects tokens, but the keys no longer rank them
        return Knn(dataclasses.replace(store, keys=mean.expand(len(store), -1)), None, options, base.device, gate=knn.gate)
    tokens = evenly_spaced(store.tokens, MOST if knn.adaptive is None else options.k or 1)  # (n,)
    keys = mean.expand(len(tokens), -1).contiguous()  # (n, d)
    mean_store = dataclasses.replace(
        store, keys=keys, tokens=tokens, sentences=store.sentences[: len(tokens)], positions=store.positions[: len(tokens)]
    )
    return Knn(mean_store, None, options.replace(index="flat", k=len(tokens)), base.device, knn.adaptive, knn.gate)
