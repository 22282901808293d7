"""The catalog of bases and sample corpora with their cards, and the licences accepted here. Independent of Gradio."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.base.metadata import directions, knows
from engine.base.registry import BaseRegistry
from engine.core.atomic_files import read_json, write_json
from engine.core.json_object import Json
from engine.core.model_card import ModelCard, read_card_file
from engine.core.settings import Settings
from engine.corpora import language_name as other
from engine.corpora.bundled import SampleCorpus, bundled_samples
from engine.errors import InputError
from engine.messages import Message
from studio.i18n.translate import mark, tr, translate_message

LANGUAGES = {
    "ar": mark("Arabic"), "cs": mark("Czech"), "de": mark("German"), "en": mark("English"), "es": mark("Spanish"),
    "fr": mark("French"), "he": mark("Hebrew"), "hi": mark("Hindi"), "id": mark("Indonesian"), "it": mark("Italian"),
    "ja": mark("Japanese"), "ko": mark("Korean"), "nl": mark("Dutch"), "pl": mark("Polish"), "pt": mark("Portuguese"),
    "ru": mark("Russian"), "sv": mark("Swedish"), "th": mark("Thai"), "tr": mark("Turkish"), "uk": mark("Ukrainian"),
    "vi": mark("Vietnamese"), "zh": mark("Chinese"),
}  # fmt: skip
ACCEPTED = "accepted_licences.json"


def language_message(*codes: str) -> Message:
    """`zh` -> `Chinese`; `zh`, `en` -> `Chinese, English`; an unknown code stays as it is."""
    first, *rest = [Message(LANGUAGES.get(re.split("[_-]", code, maxsplit=1)[0].lower()) or other(code)) for code in codes]
    for language in rest:
        first = Message(mark("{languages}, {language}"), languages=first, language=language)
    return first


def language_name(code: str) -> str:
    """The language's name in the reader's language."""
    return translate_message(language_message(code))


def language_pair_text(source: str, target: str) -> str:
    """`English to Chinese`."""
    return tr("{source} to {target}", source=language_name(source), target=language_name(target))


def default_pair(base: str) -> tuple[str | None, str | None]:
    """The initial direction of a new project: from English if a multilingual base supports it, into Chinese if possible."""
    sources, targets = _directions(base)
    first = "en" if "en" in sources and len(targets) > 2 else next(iter(sources), None)
    second = next((code for code in ("zh", *targets) if code in targets and code != first), None)
    return first, second


class Catalog:
    """The bases and sample corpora that the studio offers, and accepted licences."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def bases(self) -> list[Json]:
        """Descriptions of the bases on the shelf, `settings.first_base` first; folders without a valid model are skipped."""
        cards = BaseRegistry(self.settings).cards()
        return sorted(cards, key=lambda base: base["name"] != self.settings.first_base)  # the others keep their order

    def base_for(self, preferred: str, source: str, target: str) -> str:
        """The path of the base `preferred` if it supports the direction, else of the first base that does.

        Raises InputError if none does.
        """
        bases = self.bases()
        first = sorted(bases, key=lambda base: base["path"] != preferred)
        result = next((base for base in first if knows(base["path"], source, target)), None)
        if result is None:
            raise InputError(
                "No base here supports {source} and {target}. Add one with `tailormt base add`.",
                source=language_message(source), target=language_message(target),
            )  # fmt: skip
        return str(result["path"])

    def languages(self) -> tuple[list[str], list[str]]:
        """The source languages and the target languages of the installed bases, in the order of the bases."""
        pairs = [_directions(base["path"]) for base in self.bases()]
        sources, targets = (list(dict.fromkeys(code for pair in pairs for code in pair[side])) for side in (0, 1))
        return sources, targets

    def other_language(self, preferred: str, language: str, other: str, *, into: bool = False) -> str:
        """A language to translate `language` into, or, with `into`, from: `other` if an installed base supports the pair or none
        supports `language`, else the first supported language, with the base `preferred` checked before the others.
        """
        bases = sorted(self.bases(), key=lambda base: base["path"] != preferred)
        pairs = [_directions(base["path"])[:: -1 if into else 1] for base in bases]
        codes = [code for languages, partners in pairs if language in languages for code in partners if code != language]
        return other if other in codes or not codes else codes[0]

    def base_card(self, path: str) -> ModelCard:
        """The card of a base; an empty card if it has none."""
        return read_card_file(Path(path)) if path else ModelCard("")

    def samples(self) -> list[SampleCorpus]:
        """The bundled sample corpora."""
        # General text has no style to learn: methods that need a second domain use it automatically.
        return [corpus for corpus in bundled_samples(self.settings.assets_dir) if corpus.kind != "general"]

    def sample(self, name: str) -> SampleCorpus:
        """The bundled sample corpus with that name. Raises InputError if it does not exist."""
        result = next((corpus for corpus in self.samples() if corpus.name == name), None)
        if result is None:
            raise InputError("This sample no longer exists. Reload the page.")
        return result

    def demo_lines(self, language: str) -> str:
        """A few plain demo sentences in a language; empty if there are none."""
        try:
            return (self.settings.assets_dir / "samples" / f"demo.{language}.txt").read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    # -- licences that the user has to accept

    def accepted(self, card: ModelCard, path: str | Path) -> bool:
        """Whether the licence is unrestricted or its current terms have been accepted here."""
        return not card.restricted or read_json(self._accepted).get(_key(path)) == _terms(card)

    def accept(self, card: ModelCard, path: str | Path) -> None:
        """Record that the licence of the model at `path` was accepted. Changed terms have to be accepted again."""
        accepted: Mapping[str, Any] = read_json(self._accepted)
        write_json(self._accepted, {**accepted, _key(path): _terms(card)}, "the accepted licences")

    def agree(self, card: ModelCard, path: str | Path, name: str, agreed: bool) -> None:
        """Record acceptance of the terms of `name` if required. Raises InputError if it is required and `agreed` is false."""
        if not self.accepted(card, path):
            if not agreed:
                raise terms_not_accepted(card, name)
            self.accept(card, path)

    @property
    def _accepted(self) -> Path:
        return self.settings.home_dir / ACCEPTED


def terms_not_accepted(card: ModelCard, name: str) -> InputError:
    """The error for a licence that has to be accepted and is not."""
    words = mark("{name} is for {licence}. Tick “I accept these terms” to use it.")
    return InputError(words, name=name, licence=card.license_name)


def _directions(path: str) -> tuple[list[str], list[str]]:
    """The source and target languages of a base; if it states only one side, that side is used for both."""
    sources, targets = directions(path)
    return sources or targets, targets or sources


def _key(path: str | Path) -> str:
    return str(Path(path).resolve())


def _terms(card: ModelCard) -> str:
    return hashlib.sha256(card.license_line.encode()).hexdigest()[:16]
