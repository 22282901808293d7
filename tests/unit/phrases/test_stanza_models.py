"""Which parser is taken, what is said when there is none, and what is imported when."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import InputError, MissingError, ModelError
from engine.phrases import PhraseOptions, extract_phrases, parse_tree
from engine.phrases.stanza_models import find_models
from engine.phrases.stanza_runner import parse_sentences

NEEDS = [{"model": "pretrain", "package": "vectors"}]
ENGLISH = {
    "tokenize": {"combined": {}, "other": {}},
    "mwt": {"combined": {}},
    "pos": {"plain": {"dependencies": NEEDS}},
    "lemma": {"combined": {}},
    "depparse": {"good": {"dependencies": NEEDS}},
    "constituency": {"big": {"dependencies": NEEDS}, "small": {"dependencies": NEEDS}},
    "pretrain": {"vectors": {}},
    "packages": {
        "default": {
            "tokenize": "combined", "mwt": "combined", "pos": "plain", "lemma": "combined", "depparse": "good",
            "constituency": "small",
        }
    },
}  # fmt: skip


def lay_out(folder: Path, files: list[str], resources: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "resources.json").write_text(resources if isinstance(resources, str) else json.dumps(resources))
    for name in files:
        path = folder / f"{name}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return folder


SHARED_FILES = ["en/tokenize/combined", "en/mwt/combined", "en/pos/plain", "en/pretrain/vectors"]


def test_the_default_package_comes_first_and_all_it_needs_must_be_there(tmp_path: Path) -> None:
    files = [*SHARED_FILES, "en/constituency/big", "en/constituency/small", "en/depparse/good"]
    folder = lay_out(tmp_path, files, {"en": ENGLISH, "english": {"alias": "en"}})
    result = list(find_models("en", "constituency", [tmp_path / "nothing", folder]))
    assert [dict(model.packages)["constituency"] for model in result] == ["small", "big"]
    assert result[0].packages == (("tokenize", "combined"), ("mwt", "combined"), ("pos", "plain"), ("constituency", "small"))
    assert [model.language for model in find_models("english", "constituency", [folder])] == ["en", "en"]
    (dependency,) = find_models("eng_Latn", "dependency", [folder])
    assert dict(dependency.packages)["lemma"] == "identity"  # no lemmatiser on disk: the words themselves
    (folder / "en/pretrain/vectors.pt").unlink()
    assert list(find_models("en", "constituency", [folder])) == []


@pytest.mark.parametrize("missing", ["en/tokenize/combined", "en/mwt/combined", "en/pos/plain"])
def test_half_a_parser_is_none(tmp_path: Path, missing: str) -> None:
    files = [name for name in [*SHARED_FILES, "en/constituency/small"] if name != missing]
    assert list(find_models("en", "constituency", [lay_out(tmp_path, files, {"en": ENGLISH})])) == []


@pytest.mark.parametrize(
    "resources",
    [
        "",
        "[]",
        "{",
        {"en": []},
        {"en": {"alias": "en"}},
        {"en": {"constituency": [], "packages": 3}},
        {"en": {**ENGLISH, "pos": {"plain": {"dependencies": [3]}}, "packages": {"default": None}, "constituency": {"small": 1}}},
    ],
)
def test_a_broken_list_of_models_does_no_harm(tmp_path: Path, resources: object) -> None:
    folder = lay_out(tmp_path, [], resources)
    assert list(find_models("en", "constituency", [folder])) == []
    assert extract_phrases(["the king"], "en", parser_dirs=[folder]).parser.startswith("Statistical")


@pytest.mark.parametrize(("kind", "processor"), [("constituency", "constituency"), ("dependency", "depparse")])
def test_a_parser_asked_for_and_not_there(tmp_path: Path, kind: str, processor: str) -> None:
    with pytest.raises(MissingError) as caught:
        extract_phrases(["国王"], "zh", PhraseOptions(parser=kind), parser_dirs=[tmp_path / "a", tmp_path / "b"])
    text = str(caught.value)
    assert text.startswith(f"No {kind} parser for zh-hans is installed: put stanza's models for zh-hans (tokenize, pos, ")
    assert f"into {tmp_path / 'b'}, so that it holds resources.json and zh-hans/{processor}/" in text
    assert "\n" not in text


def test_models_that_cannot_be_loaded_give_way_in_auto_and_are_named(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, [*SHARED_FILES, "en/constituency/small"], {"en": ENGLISH})
    result = extract_phrases(["the king"], "en", parser_dirs=[folder])
    assert result.parser.startswith("Statistical")
    assert "since stanza's constituency parser for en (small) cannot be loaded" in result.parser
    with pytest.raises(MissingError, match="cannot be loaded"):
        extract_phrases(["the king"], "en", PhraseOptions(parser="constituency"), parser_dirs=[folder])


def test_a_parser_that_fails_on_everything_says_so() -> None:
    class Broken:
        def bulk_process(self, documents: list[object]) -> list[object]:
            raise RuntimeError("size mismatch")

    with pytest.raises(ModelError, match="fails on every sentence"):
        list(parse_sentences(Broken(), [f"sentence {number}" for number in range(100)]))


def test_sentences_that_cannot_be_drawn() -> None:
    for bad in ("", "  ", "a" * 1001):
        with pytest.raises(InputError):
            parse_tree(bad, "en")


def test_nothing_heavy_is_imported_without_need() -> None:
    code = (
        "import sys; from engine.phrases import extract_phrases; extract_phrases(['the king'], 'en', parser_dirs=['/nowhere']);"
        "print([name for name in ('stanza', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.strip() == "[]"
