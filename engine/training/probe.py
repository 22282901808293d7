"""Translations of a few sentences during training, to show what improves and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.evaluation.metrics import metrics
from engine.methods.interface import Method
from engine.plugins import Plugin

GREEDY = Decoding(guard=False, beam=1, no_repeat_ngram=3, max_length_ratio=1.5, longest=64)


class TranslationProbe:
    """Held-out pairs of the samples and of general text, translated greedily on request.

    So few sentences only show a trend. The figures of a finished plugin are measured on more sentences, with beam search.
    """

    def __init__(self, base: BaseModel, style: Sequence[tuple[str, str]], general: Sequence[tuple[str, str]]) -> None:
        self.base, self.style, self.general = base, list(style), list(general)

    def row(self, method: Method, module: nn.Module | None, progress: Progress) -> dict[str, object]:
        """Translate all sentences with the module, or with the base alone if it is None; returns figures and examples.

        These are `style_bleu` and `general_bleu` (0 to 100); `sample_source`, `sample_translation` and `sample_reference` of one
        style sentence; and `samples`, a list of these three for every style sentence. Empty if there is nothing to translate. The
        module must not be attached.
        """
        from engine.decoding.translate import translate

        pairs = [*self.style, *self.general]
        if not pairs:
            return {}
        # The factor that scales a finished plugin; see `Method.after_training`.
        strength = float(getattr(getattr(module, "config", None), "shrink", 1.0))
        strength = strength if method.capabilities.offers_strength else 1.0
        sources = [source for source, _ in pairs]
        progress.check()
        if module is None:
            translated = translate(self.base, sources, decoding=GREEDY)
        else:
            with method.inference_mode_while_training(module):
                translated = translate(self.base, sources, Plugin(method, module, {}), strength=strength, decoding=GREEDY)
        bleu = metrics(self.base.target)["BLEU"]
        row: dict[str, object] = {}
        parts = {
            "style_bleu": (translated[: len(self.style)], self.style),
            "general_bleu": (translated[len(self.style) :], self.general),
        }
        for key, (translations, expected) in parts.items():
            if expected:
                row[key] = round(float(bleu.corpus_score(translations, [[target for _, target in expected]]).score), 2)
        if self.style:
            position = self.sample
            row |= {
                "sample_source": self.style[position][0],
                "sample_translation": translated[position],
                "sample_reference": self.style[position][1],
                "samples": [[source, text, target] for (source, target), text in zip(self.style, translated, strict=False)],
            }
        return row

    @property
    def sample(self) -> int:
        """The index of the style sentence of middle length: neither too short to change nor too long for a page."""
        order = sorted(range(len(self.style)), key=lambda i: (len(self.style[i][1]), i))
        return order[len(order) // 2]
