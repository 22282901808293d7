"""Selection of the samples for a request, and its chat messages for an OpenAI-compatible service."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.core.languages import subtag_names
from engine.methods.llm_prompt.config import LlmPromptConfig

WIDTHS = (1, 2, 3, 4)


def ngrams(text: str) -> frozenset[str]:
    """The character n-grams of a text, 1 to 4 characters long, ignoring case and spaces, so that no tokenisation is needed."""
    plain = "".join(text.lower().split())
    return frozenset(plain[i : i + n] for n in WIDTHS for i in range(len(plain) - n + 1))


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Dice's coefficient 2 |A ∩ B| / (|A| + |B|), from 0 to 1."""
    return 2 * len(first & second) / (len(first) + len(second)) if first or second else 0.0


@dataclass(frozen=True)
class Examples:
    """The samples as (source, target) pairs."""

    pairs: tuple[tuple[str, str], ...]

    @cached_property
    def grams(self) -> list[frozenset[str]]:
        return [ngrams(source) for source, _ in self.pairs]

    def chosen(self, text: str, config: LlmPromptConfig) -> list[tuple[int, float]]:
        """(index, overlap) of the samples shown for a text: by descending overlap, ties by index, or in random order."""
        text_grams = ngrams(text)
        if config.choice == "random":
            draw = random.Random(f"{config.seed}/{text}")
            selected = draw.sample(range(len(self.pairs)), min(config.examples, len(self.pairs)))
            return [(position, overlap(text_grams, self.grams[position])) for position in selected]
        weighed = [(overlap(text_grams, grams), -position) for position, grams in enumerate(self.grams)]
        return [(-position, value) for value, position in sorted(weighed, reverse=True)[: config.examples]]


def language_name(tag: str) -> str:
    """The name of a language tag for the prompt: `Chinese (zh)`, `Portuguese, Brazil (pt-BR)`."""
    names = [subtag_names().get(part, "") for part in tag.split("-")]
    return f"{', '.join(name for name in names if name)} ({tag})" if names[0] else tag


def messages(
    text: str, pairs: Sequence[tuple[str, str]], languages: tuple[str, str], config: LlmPromptConfig, draft: str | None = None
) -> list[dict[str, str]]:
    """The chat messages: the task, the samples as earlier turns with the nearest last, and the sentence."""
    source, target = (language_name(tag) for tag in languages)
    task = f"You translate from {source} to {target}. Answer with the translation alone, in one line."
    if pairs:
        task += " Write in the style of the earlier translations: their words, their grammar, their punctuation."
    if draft is not None:
        task += " Each sentence comes with a draft translation; mend its meaning and its style."
    texts = [{"role": "system", "content": " ".join([task, *config.instruction.split()])}]
    for sample_source, sample_target in reversed(pairs):
        texts += [{"role": "user", "content": sample_source}, {"role": "assistant", "content": sample_target}]
    question = text if draft is None else f"{text}\n\nDraft: {draft}"
    return [*texts, {"role": "user", "content": question}]


def body(messages: Sequence[dict[str, str]], config: LlmPromptConfig) -> dict[str, object]:
    """The JSON of a request."""
    result: dict[str, object] = {"model": config.model, "messages": list(messages)}
    if config.temperature is not None:
        result["temperature"] = config.temperature
    if config.max_tokens is not None:
        result["max_tokens"] = config.max_tokens
    return result
