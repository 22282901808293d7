"""How each model family selects languages: by a tag in the source (Marian) or by language codes of the tokenizer.

Languages are BCP-47 tags (en, zh, pt-BR); `directions` maps each to the model's code.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from engine.base.directions import Directions, coded, marian
from engine.base.files import check_type


class Family(ABC):
    """How one family marks the direction; stateless except for its tokenizer."""

    def __init__(self, tokenizer: Any, directions: Directions) -> None:
        self.tokenizer = tokenizer
        self.directions = directions

    def check(self, source: str, target: str) -> tuple[str, str]:
        """The two languages' canonical tags.

        Raises ModelError if the model does not know a language, naming the nearest known one.
        """
        return self.directions.resolve(source, target)

    @abstractmethod
    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        """Source token ids, special tokens included."""

    @abstractmethod
    def encode_target(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        """Target token ids for the decoder to predict, special tokens included."""

    def forced_bos(self, target: str) -> int | None:
        """The token that must come first in the output, or None."""
        return None

    @abstractmethod
    def direction_ids(self) -> set[int]:
        """Ids of language tags and codes: tokens that belong to no phrase."""

    def _own(self, language: str) -> str:
        """The tokenizer's tag or code for a target language."""
        result = self.directions.targets.find(language) if self.directions.targets else None
        assert result, f"{language} was checked before"
        return result[1]


class Marian(Family):
    """Marian (OPUS-MT, ours): a tag `>>zh<<` before the source selects the target; models of one direction have none."""

    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        tag = f"{self._own(target)} " if self.directions.tagged else ""
        return self.tokenizer([tag + text for text in texts])["input_ids"]

    def encode_target(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        return self.tokenizer(text_target=texts)["input_ids"]

    def direction_ids(self) -> set[int]:
        return set(self.tokenizer.convert_tokens_to_ids(list(self.tokenizer.supported_language_codes)))


class Coded(Family):
    """M2M100, NLLB and mBART: languages are codes of the tokenizer; the target's code comes first in the output."""

    def __init__(self, tokenizer: Any, directions: Directions, codes: list[str]) -> None:
        super().__init__(tokenizer, directions)
        self.codes = codes
        # The tokenizer holds the direction as state and is shared by several directions.
        self._lock = threading.Lock()
        # M2M100's tokenizer expects the bare code, the others their token.
        self._bare = type(tokenizer).__name__.startswith("M2M100")

    def _set(self, source: str, target: str) -> None:
        words = [self._own(language) for language in (source, target)]
        self.tokenizer.src_lang, self.tokenizer.tgt_lang = (word.strip("_") if self._bare else word for word in words)

    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        with self._lock:
            self._set(source, target)
            return self.tokenizer(texts)["input_ids"]

    def encode_target(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        with self._lock:
            self._set(source, target)
            return self.tokenizer(text_target=texts)["input_ids"]

    def forced_bos(self, target: str) -> int | None:
        return int(self.tokenizer.convert_tokens_to_ids(self._own(target)))

    def direction_ids(self) -> set[int]:
        return set(self.tokenizer.convert_tokens_to_ids(self.codes))


def family_of(model_type: str, tokenizer: Any, name: str) -> Family:
    """The family of a loaded tokenizer.

    Raises ModelError for unsupported architectures, and for a tokenizer without the language codes that the family needs.
    """
    check_type(model_type, name)
    if model_type == "marian":
        result = marian(
            name,
            tokenizer.supported_language_codes,
            getattr(tokenizer, "source_lang", None),
            getattr(tokenizer, "target_lang", None),
        )
        return Marian(tokenizer, result)
    kind = type(tokenizer).__name__
    family = "mbart" if model_type == "mbart" else "nllb" if kind.startswith("Nllb") else "m2m_100"
    # M2M100's codes are not in its vocabulary.
    words = sorted({*tokenizer.get_vocab(), *getattr(tokenizer, "lang_token_to_id", ())})
    directions = coded(name, family, words)
    codes = [value for _, value in directions.targets.items()] if directions.targets else []
    return Coded(tokenizer, directions, codes)
