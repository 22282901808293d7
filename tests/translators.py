"""Translators whose every word is known: documents are tested with them, not with what a model says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.core.progress import Progress
from engine.corpora.words import word_spans
from engine.decoding.word_alignment import Alignment
from engine.serving.units.translate import Translator

__all__ = ["SystemWords", "Words", "identity", "reverse", "shout"]


class Words(Translator):
    """Translates word by word: `say` gives (word of the source, word) in the translation's order."""

    def __init__(
        self, say: Callable[[list[str]], list[tuple[int, str]]], source: str = "en", target: str = "de", joint: str = " "
    ) -> None:
        self.say, self.source, self.target, self.joint = say, source, target, joint
        self.asked: list[list[str]] = []

    def key(self) -> str:
        return f"{self.source}-{self.target}"

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        return [(list(range(begin, min(begin + 4, len(sentences)))), 1.0) for begin in range(0, len(sentences), 4)]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        progress.check()
        self.asked.append(list(sentences))
        return [self.joint.join(word for _, word in self.say(sentence.split(" "))) for sentence in sentences]

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        return [self._align(source, target) for source, target in pairs]

    def _align(self, source: str, target: str) -> Alignment:
        a, b = word_spans(source), word_spans(target)
        origins = self._owners(source, a, source.split(" "), " ")
        text = self.say(source.split(" "))
        words = self._owners(target, b, [word for _, word in text], self.joint)
        rows = []
        for j in range(len(b)):
            aligned = [i for i in range(len(a)) if origins[i] == text[words[j]][0]]
            near = [i for i in aligned if source[slice(*a[i])].casefold() == target[slice(*b[j])].casefold()] or aligned
            rows.append(dict.fromkeys(near, 1 / max(1, len(near))))
        return Alignment(a, b, rows)

    @staticmethod
    def _owners(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str], joint: str) -> list[int]:
        """Of each span, the place of the word that it is in."""
        ends, at = [], 0
        for word in words:
            at += len(word)
            ends.append(at)
            at += len(joint)
        return [next(k for k, end in enumerate(ends) if begin < end) for begin, _ in spans]


def identity(**languages: str) -> Words:
    return Words(lambda words: list(enumerate(words)), **languages)


def shout(**languages: str) -> Words:
    """The same words in capital letters."""
    return Words(lambda words: [(k, word.upper()) for k, word in enumerate(words)], **languages)


def reverse(**languages: str) -> Words:
    """The words in capital letters and from the last to the first."""
    return Words(lambda words: [(k, words[k].upper()) for k in reversed(range(len(words)))], **languages)


class SystemWords:
    """A translator that says which system wrote what; counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, system: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
        self.asked.append((system["name"], len(texts)))
        return [f"{text.split()[0]} {system['name']} {system['strength']:g}" for text in texts]
