"""How good a plugin is, against its base alone: on the user's own held-out sentences, and on general text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.evaluation.general_text import general_pairs

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair
    from engine.plugins import Plugin

GENERAL = 40  # sentences of general text


def evaluate_plugin(
    pair: LanguagePair, plugin: Plugin, held_out: Sequence[tuple[str, str]], decoding: Decoding, settings: Settings,
    own: Sequence[str], progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """The figures on held-out pairs, and under `general_…` those on the bundled general sample of the target language, where
    there is one: what the style costs elsewhere. General sentences that are among the user's `own` are left out.
    """
    result = compare_with_base(pair.forward, plugin, held_out, decoding, progress)
    general = general_pairs(pair, settings.assets_dir, GENERAL, but=own)
    if general:
        other = compare_with_base(pair.forward, plugin, general, decoding, progress)
        del other["bleu_signature"]
        result |= {f"general_{key.removeprefix('held_out_')}": value for key, value in other.items()}
    return result


def compare_with_base(
    base: BaseModel, plugin: Plugin, pairs: Sequence[tuple[str, str]], decoding: Decoding, progress: Progress
) -> dict[str, Any]:
    """BLEU and chrF of base and customized base on held-out samples under the same decoding, with the paired-bootstrap p.

    The sources of monolingual samples are synthetic, so these figures flatter; test on real pairs where you have some.
    """
    from engine.decoding.translate import translate
    from engine.evaluation import evaluate

    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    vanilla = translate(base, sources, decoding=decoding, progress=progress)
    customized = translate(base, sources, plugin, decoding=decoding, progress=progress)
    report = evaluate(
        {"vanilla": vanilla, "customized": customized},
        references,
        language=base.target,
        baseline="vanilla",
        samples=500,
    )
    before, after = report["vanilla"].figures(), report["customized"].figures()
    return {
        "held_out_sentences": len(pairs),
        "bleu_vanilla": round(before["bleu"].score, 2),
        "bleu": round(after["bleu"].score, 2),
        "bleu_p": round(after["bleu"].p or 0.0, 4),
        "chrf_vanilla": round(before["chrf"].score, 2),
        "chrf": round(after["chrf"].score, 2),
        "bleu_signature": report.signatures["BLEU"],
    }
