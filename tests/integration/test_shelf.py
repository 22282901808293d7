"""The shelf: bases are added from folders and from a hub, named by their names, listed and removed; faults leave nothing."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base import download as fetch
from engine.base.registry import BaseRegistry
from engine.core.settings import load_settings
from engine.errors import MissingError
from engine.store import Store
from tests.bases import EN_ZH, copy_base, make_base
from tests.conftest import Ran
from tests.hub import COMMIT, served_hub

Run = Callable[..., Ran]
PAIR = ("--source", "en", "--target", "zh")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("The rain stopped.\n", encoding="utf-8")
    return file


def on_shelf(home: Path) -> list[str]:
    """What lies in the folder of added bases, hidden names too."""
    return sorted(os.listdir(home / "models")) if (home / "models").exists() else []


def test_a_folder_is_added_named_listed_and_removed(tailormt: Run, home: Path, tiny: Path, text: Path) -> None:
    ran = tailormt("base", "add", tiny, "--name", "small", "--json", "--quiet")
    card = json.loads(ran.out)
    assert (ran.code, card["name"], card["languages"], card["family"]) == (0, "small", ["en", "zh"], "Marian")
    assert card["path"] == str(home / "models" / "small")
    assert card["origin"] == str(tiny)
    assert on_shelf(home) == ["small"]

    listed = json.loads(tailormt("base", "list", "--json").out)
    assert [row["name"] for row in listed] == ["de-en", "en-zh", "small"]
    assert [row["shipped"] for row in listed] == [True, True, False]
    assert listed[2]["bytes"] > 2 * listed[2]["parameters"] > 100_000
    table = tailormt("base", "list").out
    assert "bundled" in table
    assert "research and evaluation only" in table

    by_name = tailormt("translate", "--base", "small", *PAIR, text)
    assert by_name.out == tailormt("translate", "--base", tiny, *PAIR, text).out == "雨停了。\n"

    ran = tailormt("base", "remove", "small", "--json")
    assert json.loads(ran.out)["freed_bytes"] > 100_000
    assert on_shelf(home) == []
    assert "There is no base small" in tailormt("translate", "--base", "small", *PAIR, text).sentence


def test_a_base_with_many_languages_is_listed_by_their_number(tailormt: Run, home: Path, tmp_path: Path) -> None:
    from tests.hub_models import make_hub_model

    ran = tailormt("base", "add", make_hub_model("mbart50", tmp_path / "mbart50"))
    assert "mBART, 52 languages, 0.1 M parameters" in ran.out
    assert "Licence: not stated" in ran.out
    assert "52 languages" in tailormt("base", "list").out


def test_a_base_that_is_used_stays_unless_forced(tailormt: Run, home: Path, tiny: Path) -> None:
    assert tailormt("base", "add", tiny, "--name", "small").code == 0
    store = Store(load_settings().store_url)
    project = store.projects.create("Novels", "en", "zh", str(home / "models" / "small"))
    assert "used by the project Novels" in tailormt("base", "remove", "small").sentence
    assert on_shelf(home) == ["small"]
    assert tailormt("base", "remove", "small", "--force").code == 0
    assert on_shelf(home) == []

    assert tailormt("base", "add", tiny, "--name", "small").code == 0
    store.projects.update(project.id, base="elsewhere")
    mark = BaseRegistry(load_settings()).entries()[-1].origin["fingerprint"]
    store.plugins.create(project.id, "Style", method="memory_adapter", path="x.zip", base_fingerprint=mark, metrics={})
    assert "used by the plugin Style" in tailormt("base", "remove", "small").sentence


def test_what_came_along_stays(tailormt: Run, home: Path) -> None:
    assert "is bundled with the program" in tailormt("base", "remove", "en-zh", "--force").sentence
    assert "No base nothing is installed" in tailormt("base", "remove", "nothing").sentence
    assert (EN_ZH / "config.json").exists()


def spoil_json(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def wrong_architecture(folder: Path) -> None:
    spoil_json(folder / "config.json", model_type="t5", is_encoder_decoder=True)


def no_model(folder: Path) -> None:
    (folder / "config.json").unlink()


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def half_of_the_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def a_missing_shard(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})
    )


def another_vocabulary(folder: Path) -> None:
    shutil.copyfile(EN_ZH / "vocab.json", folder / "vocab.json")


def a_small_vocabulary(folder: Path) -> None:
    words = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    selected = {word: i for word, i in words.items() if i < 300 or word.startswith(">>")}
    selected = {word: i for i, word in enumerate([*selected, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(selected), encoding="utf-8")


def another_tokenizer(folder: Path) -> None:
    """SentencePiece models whose pieces the vocabulary does not have, though it has the right size."""
    words = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    selected = {(word if word[0] in "<>" else f"x{i}"): i for word, i in words.items()}
    (folder / "vocab.json").write_text(json.dumps(selected), encoding="utf-8")


def no_tokenizer(folder: Path) -> None:
    (folder / "source.spm").unlink()


FAULTS = [
    (wrong_architecture, "is a t5 model"),
    (no_model, "has no config.json"),
    (no_weights, "has no weights: model.safetensors is missing"),
    (half_of_the_weights, "is damaged or cut short"),
    (a_missing_shard, "lacks model-00002-of-00002.safetensors"),
    (another_vocabulary, "do not belong together"),
    (a_small_vocabulary, "do not belong together"),
    (another_tokenizer, "Most pieces of source.spm"),
    (no_tokenizer, "has no source.spm"),
]


@pytest.mark.parametrize(("spoil", "said"), FAULTS, ids=[spoil.__name__ for spoil, _ in FAULTS])
def test_a_spoilt_folder_is_a_sentence_and_leaves_nothing(
    tailormt: Run, home: Path, tiny: Path, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    folder = copy_base(tiny, tmp_path / "spoilt")
    spoil(folder)
    sentence = tailormt("base", "add", folder).sentence
    assert said in sentence
    assert ".tmp" not in sentence
    assert on_shelf(home) == []


def test_names(tailormt: Run, home: Path, tiny: Path, tmp_path: Path) -> None:
    assert "There is already a base en-zh" in tailormt("base", "add", tiny, "--name", "en-zh").sentence
    for name in ("../out", ".hidden", "a b", ""):
        ran = tailormt("base", "add", tmp_path / "none" / "x", "--name", name)
        assert ran.code == 2
    assert "not a valid name for a base" in tailormt("base", "add", tiny, "--name", "../out").sentence
    assert "There is no folder" in tailormt("base", "add", tmp_path / "none").sentence
    assert (
        "A revision can be given for a hub id only" in tailormt("base", "add", tiny, "--name", "s", "--revision", "main").sentence
    )
    assert on_shelf(home) == []


def test_a_full_disk(tailormt: Run, home: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))  # type: ignore[attr-defined]
    assert "and the disk of" in tailormt("base", "add", tiny, "--name", "small").sentence
    assert on_shelf(home) == []


def pickled(tiny: Path, folder: Path, weights: Any = None) -> Path:
    """A copy of the base with its weights as the hub's older repositories have them."""
    from safetensors.torch import load_file

    copy_base(tiny, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_pickled_weights_are_converted_on_request_only(tailormt: Run, home: Path, tiny: Path, tmp_path: Path, text: Path) -> None:
    folder = pickled(tiny, tmp_path / "old")
    assert "--convert" in tailormt("base", "add", folder).sentence
    assert "--convert" in tailormt("translate", "--base", folder, *PAIR, text).sentence
    assert on_shelf(home) == []
    assert tailormt("base", "add", folder, "--convert").code == 0
    assert not list((home / "models" / "old").glob("*.bin"))
    assert tailormt("translate", "--base", "old", *PAIR, text).out == "雨停了。\n"
    origin = json.loads((home / "models" / "old" / "origin.json").read_text(encoding="utf-8"))
    assert origin["converted"] is True
    tiny_origin = BaseRegistry(load_settings()).add(str(tiny), name="whole").origin
    assert origin["fingerprint"] == tiny_origin["fingerprint"]  # the same weights


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (open, (str(self.file), "w"))


def test_a_pickle_that_would_run_code_runs_none(tailormt: Run, home: Path, tiny: Path, tmp_path: Path) -> None:
    folder = pickled(tiny, tmp_path / "bad")
    torch.save({"a": Bomb(tmp_path / "ran")}, folder / "pytorch_model.bin")
    assert "cannot be read as weights alone" in tailormt("base", "add", folder, "--convert").sentence
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    assert "cannot be read as weights alone" in tailormt("base", "add", folder, "--convert").sentence
    assert not (tmp_path / "ran").exists()
    assert on_shelf(home) == []


# -- the hub: a server of its own on this machine, in the hub's protocol


@pytest.fixture
def hub(tiny: Path, tmp_path: Path) -> Iterator[str]:
    """Address of a hub with group/small, and with group/pickled that has pickled weights only."""
    small = copy_base(tiny, tmp_path / "repo")
    (small / "tf_model.h5").write_bytes(b"of another framework")
    (small / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# Small\n", encoding="utf-8")
    old = pickled(tiny, tmp_path / "repo-old")
    with served_hub({"group/small": small, "group/pickled": old}) as address:
        yield address


def test_a_hub_id_is_fetched(command: Run, home: Path, hub: str, text: Path, tmp_path: Path) -> None:
    network = {"HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "127.0.0.1"}
    ran = command("base", "add", "group/small", **network)
    assert ran.code == 0, ran.err
    assert "Added small: Marian, en, zh" in ran.out
    assert "CC BY 4.0" in ran.out
    folder = home / "models" / "small"
    assert not (folder / "tf_model.h5").exists()
    assert not (folder / ".cache").exists()
    assert json.loads((folder / "origin.json").read_text(encoding="utf-8"))["revision"] == COMMIT
    assert on_shelf(home) == ["small"]
    # Without the network: by its name, and by its hub id.
    for base in ("small", "group/small"):
        assert command("translate", "--base", base, *PAIR, text).out == "雨停了。\n"
    assert "only pickled weights" in command("base", "add", "group/pickled", **network).sentence
    assert "no model group/nothing on the hub" in command("base", "add", "group/nothing", **network).sentence
    assert on_shelf(home) == ["small"]


def test_offline_it_says_what_to_put_where(tailormt: Run, command: Run, home: Path, text: Path) -> None:
    for ran in (
        tailormt("base", "add", "Helsinki-NLP/opus-mt-en-de"),  # the hub's own switch
        command("base", "add", "Helsinki-NLP/opus-mt-en-de", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="0"),
    ):
        assert "the hub does not answer" in ran.sentence
        assert f"into {home}/models/opus-mt-en-de" in ran.sentence
        assert "config.json, model.safetensors" in ran.sentence
    ran = tailormt("translate", "--base", "Helsinki-NLP/opus-mt-en-de", *PAIR, text)
    assert "tailormt base add Helsinki-NLP/opus-mt-en-de" in ran.sentence
    assert on_shelf(home) == []


def test_the_leavings_of_a_killed_add_are_not_listed_and_go(home: Path, tiny: Path) -> None:
    shelf = BaseRegistry(load_settings())
    old = copy_base(tiny, home / "models" / ".small.abc.tmp")
    assert [entry.name for entry in shelf.entries()] == ["de-en", "en-zh"]
    os.utime(old, (1, 1))
    shelf.add(str(tiny), name="small")
    assert on_shelf(home) == ["small"]


def test_a_base_that_was_copied_there_by_hand_is_found(home: Path, tmp_path: Path) -> None:
    shelf = BaseRegistry(load_settings())
    folder = make_base(home / "models" / "one-way", tags=(), updates=2)
    assert shelf.find("one-way") == folder
    assert shelf.default("en", "zh").name == "en-zh"
    with pytest.raises(MissingError, match="Did you mean one-way"):
        shelf.find("one-wya")
