"""The source and target languages of a base, according to its tokenizer's files. Needs no torch.

Marian (OPUS-MT, ours)   a model of one direction names it in tokenizer_config.json; a multilingual one has target tags in its
                         vocabulary: >>zh<<, >>por<<, >>cmn_Hans<<, >>pt_br<<
NLLB                     codes in the vocabulary: zho_Hans
mBART-50                 codes in the vocabulary: zh_CN
M2M100                   codes of its tokenizer's table: zh, as __zh__
No languages are listed here by hand: the codes in the model's files are parsed as tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.files import read_json
from engine.core.json_object import Json
from engine.core.languages import Codes, is_collection, language_message, listed, read_tag
from engine.errors import ModelError
from engine.messages import Message

# The form of a language code in each family; the group is the code itself.
PATTERNS = {
    "nllb": re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"),
    "mbart": re.compile(r"([a-z]{2,3}_[A-Z]{2})"),
    "m2m_100": re.compile(r"__([a-z]{2,3})__"),
}
TAG = re.compile(r">>(.+)<<")


@dataclass(frozen=True)
class Directions:
    """The languages of a base. `sources` or `targets` is None if the files do not specify them; then any is accepted."""

    name: str
    sources: Codes | None
    targets: Codes | None
    tagged: bool = True  # tags or codes select the direction; otherwise the model has only one

    @property
    def languages(self) -> list[str]:
        """All canonical tags that are known, sorted."""
        return sorted({*(self.sources.tags if self.sources else ()), *(self.targets.tags if self.targets else ())})

    def resolve(self, source: str, target: str) -> tuple[str, str]:
        """The two canonical tags as this base distinguishes languages.

        Raises ModelError if it does not know one, naming the nearest known tags, or if both are the same.
        """
        if not self.tagged and self.sources and self.targets:
            result = self.sources.find(source), self.targets.find(target)
            if not (result[0] and result[1]):
                raise ModelError(
                    "The base {name} translates from {reads} to {writes} only, not from {source} to "
                    "{target}. Choose a base for that direction.",
                    name=self.name,
                    reads=language_message(self.sources.tags[0]), writes=language_message(self.targets.tags[0]),
                    source=language_message(source), target=language_message(target),
                )  # fmt: skip
        pair = self._one(source, self.sources), self._one(target, self.targets)
        if pair[0] == pair[1]:
            raise ModelError("Source and target are both {pair}. Choose two different languages.", pair=language_message(pair[0]))
        return pair

    def knows(self, source: str, target: str) -> bool:
        """Whether it can translate in that direction."""
        try:
            self.resolve(source, target)
        except ModelError:
            return False
        return True

    def _one(self, language: str, codes: Codes | None) -> str:
        if codes is None:
            tag = read_tag(language)
            if tag is None:
                raise ModelError(
                    "{language} is not a language code. Write it like en, zh, pt-BR or zh-Hant (BCP-47).", language=language
                )
            return tag.short
        result = codes.find(language)
        if result:
            return result[0]
        near = codes.nearest(language)
        advice = (
            Message("Nearest: {tags}.", tags=", ".join(near)) if near else Message("It supports {tags}.", tags=listed(codes.tags))
        )
        raise ModelError(
            "The base {name} does not support the language {language}. {advice}", name=self.name, language=language, advice=advice
        )


def marian(name: str, words: Iterable[str], source: str | None, target: str | None) -> Directions:
    """Directions of a Marian model, from the tags in its vocabulary and the languages that its tokenizer names."""
    tags = {match[1]: word for word in words if (match := TAG.fullmatch(word))}
    targets = Codes(tags)
    if not targets:
        return Directions(name, single(source), single(target), tagged=False)
    # A tag names a target. A model with two tags is bilingual; one whose named source has a tag translates among its
    # languages. In both cases the sources are the targets.
    if len(tags) == 2 or (source and not is_collection(source) and targets.find(source)):
        return Directions(name, targets, targets)
    return Directions(name, single(source), targets)


def single(code: str | None) -> Codes | None:
    """The single language that a code names; None for no code or a group of languages (mul, roa, en+de)."""
    return None if not code or is_collection(code) else Codes({code: code})


def coded(name: str, family: str, words: Iterable[str]) -> Directions:
    """Directions of NLLB ("nllb"), mBART ("mbart") or M2M100 ("m2m_100"): any two of the codes among the words.

    Raises ModelError if its tokenizer has none.
    """
    pattern = PATTERNS[family]
    codes = Codes({match[1]: word for word in words if (match := pattern.fullmatch(word))})
    if not codes:
        raise ModelError(
            "The tokenizer of {name} has no language codes, so no target language can be selected. Copy the "
            "tokenizer's files from the same place as the model.",
            name=name,
        )
    return Directions(name, codes, codes)


def stored_directions(folder: Path, model_type: str) -> Directions:
    """Directions of a base from the files in its folder, without loading a tokenizer. Raises ModelError."""
    config = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    name = folder.name
    if model_type == "marian":
        return marian(name, read_json(folder / "vocab.json"), config.get("source_lang"), config.get("target_lang"))
    kind = str(config.get("tokenizer_class", ""))
    family = "mbart" if model_type == "mbart" else "nllb" if kind.startswith("Nllb") else "m2m_100"
    words = stored_words(folder, config)
    if family == "m2m_100" and not any(PATTERNS[family].fullmatch(word) for word in words):
        from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

        words = {f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES.get(config.get("language_codes") or "m2m100", ())}
    return coded(name, family, words)


def stored_words(folder: Path, config: Json) -> set[str]:
    """The special tokens named in a tokenizer's files, smallest files first."""
    words: set[str] = set()
    files = (folder / name for name in ("special_tokens_map.json", "added_tokens.json"))
    for holder in [config, *(read_json(file) for file in files if file.exists())]:
        for key in ("additional_special_tokens", "extra_special_tokens"):
            words |= {content_of(item) for item in holder.get(key) or ()}
        words |= {content_of(item) for item in (holder.get("added_tokens_decoder") or {}).values()}
        words |= {key for key, value in holder.items() if isinstance(value, int)}
    if len(words) < 10 and (folder / "tokenizer.json").exists():
        tokenizer_json = read_json(folder / "tokenizer.json")
        words |= {content_of(item) for item in tokenizer_json.get("added_tokens") or ()}
        vocabulary = (tokenizer_json.get("model") or {}).get("vocab") or ()
        words |= {item[0] if isinstance(item, list) else item for item in vocabulary}
    return words


def content_of(item: Any) -> str:
    return str(item.get("content", "")) if isinstance(item, dict) else str(item)
