"""Words that the interface avoids and the terms it uses instead, as listed in `glossary.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GLOSSARY = Path(__file__).with_name("glossary.toml")


@dataclass(frozen=True)
class WordingRule:
    """A term, the forms banned in its favour, and the expressions in which such a form is allowed."""

    term: str
    instead_of: tuple[str, ...]
    but: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A banned form found in a text, and the term to use instead."""

    text: str
    form: str
    term: str

    def __str__(self) -> str:
        return f'"{self.form}" in {self.text!r}: write "{self.term}"'


@cache
def entries(code: str) -> tuple[WordingRule, ...]:
    """The entries for a language, `en` or `zh`."""
    rules_by_code = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    return tuple(
        WordingRule(str(rule["term"]), tuple(map(str, rule["instead_of"])), tuple(map(str, rule.get("but", ()))))
        for rule in rules_by_code.get(code, ())
    )


def findings(code: str, text: str) -> list[Finding]:
    """The banned forms in a text of a language. Text in braces is a placeholder name and is ignored."""
    without_values = re.sub(r"\{[^{}]*\}", "{}", text)
    return [
        Finding(text, form, entry.term)
        for entry in entries(code)
        for form in entry.instead_of
        if _pattern(code, form).search(_without(code, without_values, entry.but))
    ]


def _without(code: str, text: str, right: tuple[str, ...]) -> str:
    for form in right:
        text = _pattern(code, form).sub("", text)
    return text


@cache
def _pattern(code: str, form: str) -> re.Pattern[str]:
    """The pattern for a form: whole words in English, any occurrence in Chinese, which has no spaces between words."""
    escaped = re.escape(form).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<!\w){escaped}(?!\w)", re.IGNORECASE) if code == "en" else re.compile(escaped)
