"""The evaluation of a customized base, as a step that is done once: decoding settings and figures, kept in evaluation.json."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.decoding.options import Decoding
from engine.files import read_object, write_json
from engine.progress import Progress
from engine.stamps import Stamps, digest

if TYPE_CHECKING:
    from torch import nn

    from engine.methods.samples import Samples
    from engine.plugins import Plugin

__all__ = ["evaluated", "weights_digest"]

MOST = 60  # held-out sentences to choose decoding on, and as many others to compare on
FILE = "evaluation.json"


def evaluated(
    samples: Samples, plugin: Plugin, texts: Sequence[str], pairs: str, stamps: Stamps, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decoding settings, chosen on one half of the held-out pairs, and figures of the other half.

    `texts` are all sentences of the samples, `pairs` the stamp of the pairs. A service is called, and paid, when the user
    translates: a method that needs one is not evaluated here.
    """
    from engine.figures import figures
    from engine.steps import STEPS
    from engine.tuning import tune_decoding

    if plugin.method.capabilities.needs_endpoint:
        return {}, {}
    knn = plugin.knn.options.to_mapping() if plugin.knn is not None else None
    base = samples.pair.forward
    made_from = [stamps.get("method"), stamps.get("knn"), stamps.get("samples"), pairs, weights_digest(plugin.module)]
    stamp = digest(*made_from, knn, base.fingerprint(), base.precision, [digest(text) for text in texts], 1)
    file = stamps.folder / FILE
    if stamps.holds("evaluation", stamp, file) and (found := read_object(file)):
        return found["decoding"], found["metrics"]
    known = [(one.source, one.target) for one in samples.pairs("valid")]
    tuning, held_out = known[::2][:MOST], known[1::2][:MOST] or known
    progress.begin("Choosing decoding settings", 6, STEPS)
    decoding = tune_decoding(base, plugin, tuning, progress)
    progress.begin("Comparing with the base", 6, STEPS)
    metrics = figures(
        samples.pair, plugin, held_out, Decoding.from_mapping(decoding), samples.settings, list(texts), progress
    )
    stamps.begin("evaluation")
    write_json(file, {"decoding": decoding, "metrics": metrics}, "the evaluation")
    stamps.set("evaluation", stamp)
    return decoding, metrics


def weights_digest(module: nn.Module) -> str:
    """A SHA-256 of a module's weights."""
    found = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        found.update(key.encode() + value.detach().cpu().float().numpy().tobytes())
    return found.hexdigest()
