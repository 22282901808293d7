"""How good a plugin is compared with its base alone, on the user's held-out sentences and on general text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.base import BaseModel, LanguagePair
from engine.base.decoding_options import Decoding
from engine.core.progress import Part, Progress
from engine.core.settings import Settings
from engine.core.step_cache import content_hash
from engine.evaluation import evaluate
from engine.evaluation.general_text import baseline_key, general_pairs, keep_translations, kept_in, translations
from engine.plugins import Plugin


def evaluate_plugin(
    pair: LanguagePair, plugin: Plugin, held_out: Sequence[tuple[str, str]], decoding: Decoding, settings: Settings,
    user_texts: Sequence[str], progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """The figures on held-out pairs, and as `general_…` those on the bundled general sample of the target language, if any, which
    show what the style costs elsewhere. General sentences among `user_texts` are left out. `test_set` identifies the held-out
    pairs: figures of plugins are comparable if it is the same.
    """
    general = general_pairs(pair.backward, settings, exclude=user_texts)
    sources = [source for source, _ in general]
    own_lines, total = 2 * len(held_out), 2 * (len(held_out) + len(general))  # each by the base and by the plugin
    result = compare_with_base(pair.forward, plugin, held_out, decoding, Part(progress, 0, total))
    result["test_set"] = content_hash([list(row) for row in held_out])
    if general:
        vanilla = general_baseline(pair.forward, sources, settings, Part(progress, own_lines, total))
        general_progress = Part(progress, own_lines + len(general), total)
        other = compare_with_base(pair.forward, plugin, general, decoding, general_progress, vanilla)
        del other["bleu_signature"]
        result |= {f"general_{key.removeprefix('held_out_')}": value for key, value in other.items()}
    return result


def compare_with_base(
    base: BaseModel, plugin: Plugin, pairs: Sequence[tuple[str, str]], decoding: Decoding, progress: Progress,
    vanilla: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """BLEU and chrF of base and customized base on the pairs, with 95 % intervals and the paired-bootstrap p. Without the base's
    translations, `vanilla`, it translates with the same decoding settings.

    The sources of monolingual samples are synthetic, so these figures are optimistic; test on real pairs if you have some.
    """
    from engine.decoding.translate import translate

    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    passes = 1 if vanilla else 2
    vanilla = vanilla or translate(base, sources, decoding=decoding, progress=Part(progress, 0, passes * len(pairs)))
    second = Part(progress, (passes - 1) * len(pairs), passes * len(pairs))
    customized = translate(base, sources, plugin, decoding=decoding, progress=second)
    report = evaluate(
        {"vanilla": list(vanilla), "customized": customized}, references, language=base.target, baseline="vanilla", samples=500
    )
    before, after = report["vanilla"].figures(), report["customized"].figures()
    result: dict[str, Any] = {"held_out_sentences": len(pairs), "bleu_signature": report.signatures["BLEU"]}
    for name in ("bleu", "chrf"):
        score = after[name]
        result |= {
            f"{name}_vanilla": round(before[name].score, 2), name: round(score.score, 2), f"{name}_p": round(score.p or 0.0, 4),
            f"{name}_low": round(score.low, 2), f"{name}_high": round(score.high, 2),
        }  # fmt: skip
    return result


def general_baseline(base: BaseModel, sources: Sequence[str], settings: Settings, progress: Progress) -> list[str]:
    """General text translated by the base alone with its default decoding, once per base, so that all its plugins are compared with
    the same translations.
    """
    from engine.decoding.translate import translate

    folder, key = kept_in(settings), baseline_key(base, sources)
    baseline = translations(folder, key, len(sources))
    if baseline is None:
        baseline = list(translate(base, list(sources), decoding=base.decoding({}), progress=progress))
        keep_translations(folder, key, baseline)
    return baseline
