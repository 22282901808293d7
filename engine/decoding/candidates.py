"""The candidates for one position of a translation, with the model's probabilities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.base import BaseModel
from engine.base.adapter import Adapter, active_adapter
from engine.core.languages import UNSPACED, primary_language

if TYPE_CHECKING:
    import torch

MARK = "\u2581"  # SentencePiece's space, which starts a word
BYTE = re.compile(r"^<0x[0-9A-F]{2}>$")
LONGEST = 8  # maximum tokens of a word


@dataclass(frozen=True)
class Candidate:
    """A word and the summed probability, 0 to 1, of the tokens that begin it; `text` is empty for the end of the sentence."""

    text: str
    probability: float


def candidates(
    base: BaseModel, source: str, prefix: Sequence[int], plugin: Adapter | None = None, *, strength: float = 1.0, count: int = 5
) -> list[Candidate]:
    """The words that start with the `count` likeliest tokens after the target tokens `prefix`, each continued greedily to its end.

    Raises OptionError if the plugin gives no probabilities.
    """
    import torch

    plugin = active_adapter(base, source, plugin, strength)
    if plugin is not None:
        plugin.check_likelihood()
    row = base.encode([source])[0][: base.max_tokens]
    with base.using(plugin, strength), torch.inference_mode():
        following = _Following(base, row, plugin)
        best, tokens = following([list(prefix)])[0].topk(count)  # (k,) each
        words = [[int(token)] for token in tokens]
        open_words = [i for i, word in enumerate(words) if word[0] not in base.special_ids]
        for _ in range(LONGEST - 1):
            if not open_words:
                break
            likeliest = following([[*prefix, *words[i]] for i in open_words]).argmax(-1).tolist()  # k tokens
            goes_on = [i for i, token in zip(open_words, likeliest, strict=True) if _within_word(base, words[i], token)]
            for i in goes_on:
                words[i].append(likeliest[open_words.index(i)])
            open_words = goes_on
        texts = base.decode(words)
    shares: dict[str, float] = {}  # different tokens may lead to the same word
    for text, share in zip(texts, best.exp().tolist(), strict=True):
        shares[text] = shares.get(text, 0.0) + share
    return [Candidate(text, share) for text, share in sorted(shares.items(), key=lambda item: -item[1])]


class _Following:
    """Log-probabilities (k, V) of the next token after each of k prefixes of translations of one source."""

    def __init__(self, base: BaseModel, source: list[int], plugin: Adapter | None) -> None:
        self.base, self.source, self.plugin = base, source, plugin

    def __call__(self, prefixes: Sequence[Sequence[int]]) -> torch.Tensor:
        base = self.base
        inputs = base.pad_batch([self.source] * len(prefixes))  # (k, S)
        labels = base.pad_batch([[*prefix, base.pad] for prefix in prefixes])  # (k, T)
        if self.plugin is not None:
            self.plugin.set_source(base, inputs)
        logits = base.logits(inputs, labels)  # (k, T, V)
        last = [len(prefix) for prefix in prefixes]
        return logits[range(len(prefixes)), last].float().log_softmax(-1)  # (k, V)


def _within_word(base: BaseModel, word: Sequence[int], token: int) -> bool:
    """Whether a token continues the word; in languages without spaces only if it completes a character."""
    if token in base.special_ids:
        return False
    pieces = base.tokenizer.convert_ids_to_tokens([*word, token])
    if primary_language(base.target) in UNSPACED:
        return pieces[-2] == MARK or bool(BYTE.match(pieces[-1]) and BYTE.match(pieces[-2]))
    return not pieces[-1].startswith(MARK) and pieces[-1][:1] not in ".,;:!?)]”»"
