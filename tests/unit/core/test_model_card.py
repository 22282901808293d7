"""Cards: what a README.md says of a licence is told as it is, and no card breaks anything."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.model_card import NOT_STATED, parse_card, read_card_file

ASSETS = Path(__file__).resolve().parents[3] / "assets"


def test_front_matter_is_read_as_the_hub_does() -> None:
    card = parse_card(
        "---\r\nlanguage:\r\n- en\r\n- zh\r\nlicense: apache-2.0\r\npretty_name: Opus MT\r\ndatasets: [opus]\r\n---\r\n"
        "# opus-mt-en-zh\r\n\r\nA **model** of [Helsinki](https://example.org), `small`.\r\n\r\nMore.\r\n",
        "folder",
    )
    assert (card.title, card.license, card.languages) == ("Opus MT", "apache-2.0", ("en", "zh"))
    assert card.summary == "A model of Helsinki, small."
    assert card.body.startswith("# opus-mt-en-zh\n")
    assert card.metadata["datasets"] == ["opus"]
    assert card.license_line == "Licence: Apache 2.0."
    assert not card.restricted


@pytest.mark.parametrize("text", ["", "# A model\n\nWords.\n", "---\n---\n# A model\n", "---\nlicense:\n---\n# A model"])
def test_without_a_licence_it_says_so(text: str) -> None:
    card = parse_card(text, "folder")
    assert card.license == ""
    assert card.license_name == NOT_STATED
    assert card.license_line == "Licence: not stated."
    assert not card.restricted


def test_a_missing_card_and_one_without_front_matter(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert read_card_file(tmp_path / "mine").title == "mine"
    assert read_card_file(tmp_path / "mine" / "README.md").title == "mine"
    assert read_card_file(tmp_path / "gone" / "README.md").license_line == "Licence: not stated."
    (tmp_path / "mine" / "README.md").write_bytes(b"\xef\xbb\xbf# My base\n\n| a | b |\n|---|---|\n\nMade by \xff me.\n")
    card = read_card_file(tmp_path / "mine")
    assert (card.title, card.summary) == ("My base", "Made by � me.")


@pytest.mark.parametrize(
    ("front", "line"),
    [
        ("license: cc-by-nc-4.0", "Licence: CC BY-NC 4.0. Not for commercial use."),
        ("license: cc-by-nc-sa-4.0\nlicense_note: Ask us.", "Licence: CC BY-NC-SA 4.0. Ask us."),
        ("license: other\nlicense_name: research-only", "Licence: research only. For research only."),
        (
            "license: other\nlicense_note: For research and evaluation only.",
            "Licence: not stated. For research and evaluation only.",
        ),
        ("license: mit\nlicense_note: The data are for non-commercial use.", "Licence: MIT. The data are for non-commercial use."),
    ],
)
def test_restrictions_are_plain(front: str, line: str) -> None:
    card = parse_card(f"---\n{front}\n---\n")
    assert card.restricted
    assert card.license_line == line


@pytest.mark.parametrize("license_id", ["apache-2.0", "cc0-1.0", "cc-by-sa-4.0", "gpl-3.0", "afl-3.0", "ncsa", "openrail"])
def test_free_licences_are_no_restriction(license_id: str) -> None:
    assert not parse_card(f"---\nlicense: {license_id}\n---\n").restricted


@pytest.mark.parametrize(
    "front",
    ["- a\n- list", "just words", "a: [", "self: 1", "ignore_metadata_errors: yes\nlicense: mit", "1: 2\n? [a]\n: b",
     "!!python/object/apply:os.system ['true']", "license: &a [*a]", "model-index: 7\nlicense: mit"],
)  # fmt: skip
def test_odd_front_matter_counts_as_none(front: str) -> None:
    card = parse_card(f"---\n{front}\n---\n# Title\n", "x")
    assert card.title == "Title"
    assert card.license_name in (NOT_STATED, "MIT") or len(card.license_name) < 100


def test_a_card_that_grows_stays_small() -> None:
    front = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    card = parse_card(f"---\n{front}license: mit\n---\n# Bomb\n")
    assert card.license == "mit"
    assert len(repr(card)) < 2000
    assert parse_card("---\na: " + "[" * 100_000 + "\n---\n# Deep\n").title == "Deep"


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_is_an_error(front: str, body: str) -> None:
    for text in (front, f"---\n{front}\n---\n{body}"):
        card = parse_card(text, "name")
        assert isinstance(card.license_line, str)
        assert len(card.summary) <= 300


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a card asked the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert read_card_file(ASSETS / "models" / "en-zh").restricted


def test_the_import_is_light() -> None:
    code = "import sys, engine.core.model_card; print(sorted({'yaml', 'huggingface_hub', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_shipped_base_states_its_licence() -> None:
    folders = [path.parent for path in (ASSETS / "models").glob("*/config.json")]
    assert folders
    for folder in folders:
        card = read_card_file(folder)
        assert card.license_name != NOT_STATED, folder
        assert card.languages, folder
        assert card.summary, folder
