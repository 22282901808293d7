"""Language identification with lingua, on a sample spread evenly over the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")

SAMPLE = 400
READ = 300  # characters of a text used to identify its language; the time grows with their number
# Loading all 75 languages takes about 1 GB and 5 s; these and the project's languages cover what is likely to be uploaded.
COMMON = "en zh ja ko de fr es it pt nl ru uk pl cs tr ar fa hi vi th id sv da fi el he hu ro"
ALIASES = {"no": "nb", "cmn": "zh", "zho": "zh", "yue": "zh", "iw": "he", "in": "id"}
UNKNOWN = "unknown"
LEAST_CONFIDENCE = 0.02  # lingua's, summed over the expected languages; below it a sentence counts as foreign
SHORT = 12  # letters; a shorter alphabetic sentence ("Very well.") says little about its language


def base_language(code: str) -> str:
    """The bare code: zh for zh-CN, zh_Hans, zho_Hans and ZH."""
    base = code.replace("_", "-").split("-")[0].strip().lower()
    base = ALIASES.get(base, base)
    return _from_three_letters(base) if len(base) == 3 else base


@cache
def _from_three_letters(code: str) -> str:
    from lingua import IsoCode639_3, Language

    result = getattr(IsoCode639_3, code.upper(), None)
    return Language.from_iso_code_639_3(result).iso_code_639_1.name.lower() if result else code


def _lingua_language(code: str) -> Any:
    """lingua's language for a code, or None if lingua does not support it."""
    from lingua import IsoCode639_1, Language

    result = getattr(IsoCode639_1, base_language(code).upper(), None)
    return Language.from_iso_code_639_1(result) if result else None


def language_name(code: str) -> str:
    """The language's English name, or the code if the name is unknown."""
    result = _lingua_language(code)
    return result.name.title() if result else code


@cache
def _detector(codes: frozenset[str]) -> Any:
    from lingua import LanguageDetectorBuilder

    languages = {_lingua_language(code) for code in codes} - {None}
    return LanguageDetectorBuilder.from_languages(*sorted(languages, key=lambda item: item.name)).build()


def evenly_spaced(items: Sequence[Item], count: int = SAMPLE) -> list[Item]:
    """At most `count` of the items, evenly spread from the first to the last."""
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]


def identify(texts: Sequence[str], *expected: str, max_texts: int = SAMPLE) -> dict[str, float] | None:
    """Shares of languages (summing to 1) in a sample of at most `max_texts` of the texts, by code, most frequent first.

    `expected` are the codes of the project's languages. None if the first of them cannot be identified or if there are no texts.
    """
    result = detect(texts, *expected, max_texts=max_texts)
    return None if result is None else shares(result)


def shares(identified: Sequence[tuple[int, str]]) -> dict[str, float]:
    """Shares of languages in the results of `detect`, by code, most frequent first."""
    return {code: count / len(identified) for code, count in Counter(code for _, code in identified).most_common()}


def detect(texts: Sequence[str], *expected: str, max_texts: int = SAMPLE) -> list[tuple[int, str]] | None:
    """(index, code) of an evenly spread sample of at most `max_texts` of the texts; None in the same cases as `identify`."""
    if expected and _lingua_language(expected[0]) is None:
        return None
    sample = evenly_spaced(range(len(texts)), 3 * max_texts)
    telling = [position for position in sample if _telling(texts[position])]
    # If few texts are long enough (as in a list of exclamations), a rough result from all beats one from a handful.
    sample = evenly_spaced(telling if len(telling) * 5 >= len(sample) else sample, max_texts)
    if not sample:
        return None
    detector = _detector(_codes(expected))
    results = []
    for position in sample:
        language = detector.detect_language_of(texts[position][:READ])
        results.append((position, language.iso_code_639_1.name.lower() if language else UNKNOWN))
    return results


def confidences(text: str, *expected: str) -> list[tuple[str, float]]:
    """(code, confidence above 0, up to 1) of the languages that a text may be in (COMMON or `expected`), likeliest first."""
    values = _detector(_codes(expected)).compute_language_confidence_values(text[:READ])
    results = [(value.language.iso_code_639_1.name.lower(), round(value.value, 4)) for value in values]
    return [(code, value) for code, value in results if value > 0] if any(map(str.isalpha, text)) else []


def surely_other(text: str, code: str, *expected: str) -> bool:
    """Whether this text, identified as `code`, is almost certainly in none of the `expected` languages."""
    if code in (UNKNOWN, *map(base_language, expected)) or not _telling(text):
        return False
    values = _detector(_codes(expected)).compute_language_confidence_values(text[:READ])
    scores = {value.language.iso_code_639_1.name.lower(): value.value for value in values}
    return sum(scores.get(base_language(language), 0.0) for language in expected) < LEAST_CONFIDENCE


def plainly_other(text: str, source: str, target: str) -> str:
    """The code of the language that a text is clearly in if that is not `source`; otherwise, or if uncertain, an empty string."""
    detected = detect([text], source, target)
    code = detected[0][1] if detected else ""
    return code if code and surely_other(text, code, source) else ""


def _codes(expected: Sequence[str]) -> frozenset[str]:
    return frozenset(COMMON.split()) | {base_language(code) for code in expected}


def _telling(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    # A letter of a script without spaces carries as much information as several Latin ones.
    wide = sum(c > "\u2e7f" for c in letters)
    return len(letters) + 5 * wide >= SHORT
