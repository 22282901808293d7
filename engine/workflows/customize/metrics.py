"""The evaluation of a customized base, done once: decoding settings and figures, stored in evaluation.json."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from torch import nn

from engine.base import BaseModel
from engine.core.atomic_files import read_json, write_json
from engine.core.progress import Progress
from engine.core.step_cache import StepCache, content_hash
from engine.evaluation.metrics import metrics
from engine.methods.data import Samples
from engine.plugins import Plugin
from engine.workflows.customize.evaluate import evaluate_plugin

MOST = 60  # held-out sentences to choose decoding on, and as many others for the comparison
FILE = "evaluation.json"
DECODINGS: tuple[dict[str, Any], ...] = ({}, {"no_repeat_ngram": 3})
MARGIN = 0.2  # minimum BLEU gain of a later candidate, to rule out chance


def evaluate_step(
    samples: Samples, plugin: Plugin, texts: Sequence[str], pairs: str, cache: StepCache, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decoding settings, chosen on one half of the held-out pairs, and figures on the other half.

    `texts` are all sentences of the samples, `pairs` is the key of the pairs. Methods that call a service, which may cost money,
    are not evaluated.
    """
    if plugin.method.capabilities.needs_endpoint:
        return {}, {}
    knn = plugin.knn.options.to_mapping() if plugin.knn is not None else None
    base = samples.pair.forward
    made_from = [cache.get("method"), cache.get("knn"), cache.get("samples"), pairs, hash_weights(plugin.module)]
    made_from += ["domain filter"] if plugin.domain_filter is not None else []
    key = content_hash(*made_from, knn, base.fingerprint(), base.precision, [content_hash(text) for text in texts], 3)
    file = cache.folder / FILE
    if cache.is_fresh("evaluation", key, file) and (data := read_json(file)):
        return data["decoding"], data["metrics"]
    valid_pairs = [(pair.source, pair.target) for pair in samples.pairs("valid")]
    tuning, held_out = valid_pairs[::2][:MOST], valid_pairs[1::2][:MOST] or valid_pairs
    progress.begin("Choosing decoding settings")
    decoding = tune_decoding(base, plugin, tuning, progress)
    progress.begin("Comparing with the base")
    metrics = evaluate_plugin(samples.pair, plugin, held_out, base.decoding(decoding), samples.settings, list(texts), progress)
    cache.invalidate("evaluation")
    write_json(file, {"decoding": decoding, "metrics": metrics}, "the evaluation")
    cache.mark_done("evaluation", key)
    return decoding, metrics


def hash_weights(module: nn.Module) -> str:
    """A SHA-256 of a module's weights."""
    result = hashlib.sha256()
    for key, value in sorted(module.state_dict().items()):
        result.update(key.encode() + value.detach().cpu().float().numpy().tobytes())
    return result.hexdigest()


def tune_decoding(base: BaseModel, plugin: Plugin, pairs: Sequence[tuple[str, str]], progress: Progress) -> dict[str, Any]:
    """The changes to the base's decoding defaults with which the plugin's translations of the pairs have the best BLEU.

    Only blocking repetition is tried, since plugins may repeat themselves where the base does not. Length and cut-offs stay the
    base's: tuned on a few sentences of the samples, they cost general text more than the method does (docs/how-it-works.md).
    """
    from engine.decoding.translate import translate

    bleu = metrics(base.target)["BLEU"]
    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    best, chosen = float("-inf"), DECODINGS[0]
    for done, decoding in enumerate(DECODINGS):
        progress.advance(done, len(DECODINGS))
        translations = translate(base, sources, plugin, decoding=base.decoding(decoding))
        value = float(bleu.corpus_score(translations, [references]).score)
        if value > best + MARGIN:
            best, chosen = value, decoding
    progress.advance(len(DECODINGS), len(DECODINGS))
    return dict(chosen)
