"""The words of the interface: no message, no translation and no heading of the README has a form that the glossary bans."""

from __future__ import annotations

import re

import pytest

from studio.i18n.extract import collected
from studio.i18n.translate import LANGUAGES, messages
from studio.i18n.wording import entries, findings
from tests.bases import ROOT


def found(code: str, texts: list[str]) -> list[str]:
    return [str(finding) for text in dict.fromkeys(texts) if text for finding in findings(code, text)]


def test_no_message_has_a_banned_form() -> None:
    texts = [text for pair in collected().items() for text in pair]
    assert found("en", texts) == [], "studio/i18n/glossary.toml has what to write instead"


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_no_translation_has_a_banned_form(code: str) -> None:
    translations = messages(code)
    assert found("en", list(translations)) == [], "run make messages"
    assert found(code, list(translations.values())) == [], "studio/i18n/glossary.toml has what to write instead"


def test_no_heading_of_the_readme_has_a_banned_form() -> None:
    headings = re.findall(r"(?m)^#+ (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert headings
    assert found("en", headings) == []


@pytest.mark.parametrize("code", list(LANGUAGES))
def test_each_entry_has_a_term_that_it_does_not_ban(code: str) -> None:
    assert entries(code)
    for entry in entries(code):
        assert entry.term
        assert entry.instead_of
        assert found(code, [entry.term]) == []


def test_a_finding_names_the_form_and_the_term() -> None:
    assert found("en", ["No sure\n difference here", "Stamps", "untold, a stampede, {told}"]) == [
        '"No sure difference" in \'No sure\\n difference here\': write "Not statistically significant"',
        '"stamps" in \'Stamps\': write "version or date"',
    ]
    assert found("zh", ["你的预算"]) == ['"你" in \'你的预算\': write "您"', '"预算" in \'你的预算\': write "训练时长"']
