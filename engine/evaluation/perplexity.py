"""Perplexity of a text under the style, by a character n-gram model trained on the samples.

Paper 1 fine-tunes a pretrained Transformer. With a few hundred sentences and nothing to download, characters with Kneser-Ney
smoothing are better than a network trained from scratch, train in seconds, and have no unknown words that could hide a bad
translation. Perplexity is per character in scripts without spaces, and per word or sign in others, as usual; compare it only
between systems scored by the same model.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from engine.core.atomic_files import atomic_write
from engine.core.json_object import Json
from engine.core.languages import unspaced
from engine.errors import CorpusError, InputError
from engine.evaluation.diff import tokens
from engine.evaluation.ngrams import END, UNKNOWN, Ngrams
from engine.messages import mark

FILE = "style_language_model.safetensors"
KIND = "tailor-mt style language model 1"
MOST = 3_000_000  # maximum number of training characters
HELD_OUT = 0.1
ORDER, SPACED_ORDER = 5, 7  # characters


@dataclass(eq=False)
class StyleLanguageModel:
    """A character n-gram model; `held_out` is its perplexity on held-out samples, `sentences` the number of training sentences."""

    language: str
    letters: dict[str, int]
    ngrams: Ngrams
    sentences: int
    held_out: float

    @classmethod
    def learn(cls, texts: Sequence[str], language: str, seed: int = 1) -> StyleLanguageModel:
        """Train on sentences of the style. The held-out perplexity is that of a first model, on a tenth of them not used to train
        it.

        Raises CorpusError with fewer than 20 sentences.
        """
        selected = sample_texts(list(dict.fromkeys(filter(None, map(tidy, texts)))), seed)
        if len(selected) < 20:
            raise CorpusError(
                "A language model of the style needs at least 20 different sentences; there are {count}.", count=len(selected)
            )
        cut = max(2, int(HELD_OUT * len(selected)))
        first = cls._fit(selected[cut:], language)
        model = cls._fit(selected, language)
        model.held_out = first.perplexity(selected[:cut])
        return model

    @classmethod
    def _fit(cls, texts: Sequence[str], language: str) -> StyleLanguageModel:
        letters = {letter: index for index, (letter, _) in enumerate(Counter("".join(texts)).most_common(), END + 1)}
        order = ORDER if unspaced(language) else SPACED_ORDER
        rows = [[letters[letter] for letter in text] for text in texts]
        return cls(language, letters, Ngrams.count(rows, len(letters) + 2, order), len(texts), 0.0)

    @property
    def unit(self) -> str:
        """The unit of perplexity."""
        return mark("character") if unspaced(self.language) else mark("word")

    @property
    def signature(self) -> str:
        """What a figure is based on, in sacrebleu's format."""
        return (
            f"model:character-{self.ngrams.order}-gram|smooth:kneser-ney|per:{self.unit}|sentences:{self.sentences}"
            f"|held-out:{self.held_out:.1f}"
        )

    def score(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """(negative log-probability in nats, units) of each text, both including its end; their sums yield the perplexity."""
        clean = [tidy(text) for text in texts]
        rows = [[self.letters.get(letter, UNKNOWN) for letter in text] for text in clean]
        units = [1 + sum(not token.isspace() for token in tokens(text, self.language)) for text in clean]
        return list(zip(self.ngrams.surprise(rows), units, strict=True))

    def perplexity(self, texts: Sequence[str]) -> float:
        """The perplexity of all texts together. Raises InputError without texts."""
        result = self.score(texts)
        if not result:
            raise InputError("There is no text to measure perplexity on.")
        return math.exp(sum(nats for nats, _ in result) / sum(units for _, units in result))

    def save(self, folder: Path) -> Path:
        """Write the model into `folder`; tensors and JSON only. Raises StorageError."""
        from safetensors.numpy import save_file

        tensors = {
            f"{name}.{k}": value
            for name, levels in (("keys", self.ngrams.keys), ("chances", self.ngrams.chances), ("weights", self.ngrams.weights))
            for k, value in enumerate(levels)
        }
        metadata = {
            "kind": KIND,
            "language": self.language,
            "letters": "".join(self.letters),
            "sentences": self.sentences,
            "held_out": self.held_out,
            "unknown": self.ngrams.unknown,
            "order": self.ngrams.order,
        }
        with atomic_write(folder / FILE, "the language model") as temporary:
            save_file(tensors, temporary, metadata={"about": json.dumps(metadata, ensure_ascii=False)})
        return folder / FILE

    @classmethod
    def load(cls, folder: Path) -> StyleLanguageModel:
        """Load what save() wrote. Raises InputError if it is missing or damaged."""
        path = folder / FILE
        try:
            with safe_open(path, "numpy") as file:
                metadata: Json = json.loads(file.metadata()["about"])
                if metadata["kind"] != KIND:
                    raise ValueError(metadata["kind"])
                order, letters = int(metadata["order"]), str(metadata["letters"])
                levels = {name: [file.get_tensor(f"{name}.{k}") for k in range(order)] for name in ("keys", "chances", "weights")}
        except (OSError, SafetensorError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                "{path} is not a language model of this version ({error}). Measure again.", path=path, error=error
            ) from None
        ngrams = Ngrams(len(letters) + 2, levels["keys"], levels["chances"], levels["weights"], float(metadata["unknown"]))
        return cls(
            str(metadata["language"]),
            {letter: index for index, letter in enumerate(letters, END + 1)},
            ngrams,
            int(metadata["sentences"]),
            float(metadata["held_out"]),
        )


def tidy(text: str) -> str:
    return " ".join(text.split())


def sample_texts(texts: list[str], seed: int) -> list[str]:
    """The texts in random order, up to MOST characters."""
    random.Random(seed).shuffle(texts)
    selected: list[str] = []
    size = 0
    for text in texts:
        size += len(text)
        if size > MOST and selected:
            break
        selected.append(text)
    return selected
