"""kNN decoding beside a method, from the command line: put in while customizing, added later, tuned again."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.base import BaseModel
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.methods.batches import Pairs
from engine.plugins import Plugin, read_bundle_card, verify_bundle
from engine.workflows.customize.pipeline import customize
from tests.bases import SAMPLES, SENTENCES
from tests.conftest import Ran

Run = Callable[..., Ran]
SOURCES = [source for source, _ in SENTENCES[:4]]


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """Thirty sentences of the same author that no plugin here was made from."""
    lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[60:90]
    file = tmp_path / "others.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def carrying(bundle: Path, tiny: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the plugin with a datastore that is searched as a whole, by `knn add`."""
    from engine.cli.main import main

    output = tmp_path_factory.mktemp("carrying") / "both.zip"
    before = bundle.read_bytes()
    line = ("knn", "add", "--plugin", bundle, "--base", tiny, "--samples", sample, "-o", output, "--quiet")
    assert main([*map(str, line), "--k", "4", "--retrieval", "global"]) == 0
    assert bundle.read_bytes() == before
    return output


def test_customize_with_a_datastore(request_for: Callable[..., Any], base: BaseModel, sample: Path, tmp_path: Path) -> None:
    request = request_for(tmp_path / "both.zip", knn=True, knn_options={"k": 4, "index": "hnsw"})
    summary = customize(request, tmp_path / "workspace")
    card = read_bundle_card(tmp_path / "both.zip")
    assert {"datastore.safetensors", "datastore.jsonl", "datastore.faiss", "memory.safetensors"} <= set(card["files"])
    assert card["knn"]["k"] == 4
    assert card["knn"]["temperature"] > 0
    assert 0.05 <= card["knn"]["weight"] <= 0.9
    assert summary["knn"]["entries"] > 200
    assert summary["knn"]["loss"] < summary["knn"]["loss_base"]
    plugin = Plugin.load(tmp_path / "both.zip", base, cache=tmp_path / "cache")
    assert plugin.knn is not None
    assert translate(base, SOURCES, plugin, strength=0.0) == translate(base, SOURCES)
    assert any(row["layer"] == -1 and row["items"] for row in plugin.attributions(base, *SENTENCES[0]))

    # The datastore's keys are the adapted model's, and its sentences are those of training alone.
    texts = plugin.knn.datastore.texts
    valid = [
        row["target"]
        for row in map(json.loads, (tmp_path / "workspace" / "pairs.jsonl").open(encoding="utf-8"))
        if row["part"] == "valid"
    ]
    assert not {target for _, target in texts} & set(valid)
    from engine.methods.knn.forced_decoding import forced

    pairs = Pairs.encode(base, [SentencePair(*texts[0])])
    (part,) = forced(base, pairs, plugin, "output")
    assert plugin.knn.datastore.keys is not None
    first = plugin.knn.datastore.keys[plugin.knn.datastore.sentences == 0].float()
    assert (part.states - first).abs().max() < 0.05

    stamp = (tmp_path / "workspace" / "knn" / "datastore.safetensors").stat().st_mtime_ns
    assert customize(request, tmp_path / "workspace")["knn"] == summary["knn"]
    assert (tmp_path / "workspace" / "knn" / "datastore.safetensors").stat().st_mtime_ns == stamp


def test_add_makes_a_plugin_that_translates_with_both(
    carrying: Path, bundle: Path, base: BaseModel, tailormt: Run, tiny: Path, sample: Path, tmp_path: Path
) -> None:
    card = verify_bundle(carrying)
    assert set(card["files"]) - set(verify_bundle(bundle)["files"]) == {"datastore.safetensors", "datastore.jsonl"}
    pairs = [(source, "他竟不曾来。") for source in SOURCES]
    both, alone = (Plugin.load(path, base, cache=tmp_path / "cache") for path in (carrying, bundle))
    assert score(base, pairs, both) != score(base, pairs, alone)
    again = tailormt("knn", "add", "--plugin", carrying, "--base", tiny, "--samples", sample, "-o", tmp_path / "x.zip")
    assert "carries a datastore already" in again.sentence
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("more", [(), ("--adaptive",), ("--finalists", "2")])
def test_tune_changes_the_settings_and_nothing_else(
    carrying: Path, tailormt: Run, base: BaseModel, tiny: Path, others: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    output = tmp_path / "tuned.zip"
    line = ("knn", "tune", carrying, "--base", tiny, "--samples", others, "--weight", "0.25", *more, "-o", output)
    ran = tailormt(*line, "--json", "--quiet")
    assert ran.code == 0, ran.err
    value = json.loads(ran.out)
    assert value["settings"]["weight"] == 0.25
    assert value["settings"]["adaptive"] == ("--adaptive" in more)
    card = verify_bundle(output)
    assert card["knn"] == value["settings"]
    assert ("adaptive.safetensors" in card["files"]) == ("--adaptive" in more)
    with zipfile.ZipFile(carrying) as old, zipfile.ZipFile(output) as new:
        for name in set(old.namelist()) - {"adapter_config.json", "manifest.json"}:
            assert old.read(name) == new.read(name)
    plugin = Plugin.load(output, base, cache=tmp_path / "cache")
    assert len(translate(base, SOURCES, plugin)) == len(SOURCES)


def test_by_sentence_the_gate_is_in_the_bundle_and_is_learned_anew_on_other_sentences(
    bundle: Path, tailormt: Run, base: BaseModel, tiny: Path, others: Path, sample: Path, tmp_path: Path
) -> None:
    plugin, tuned, gate = tmp_path / "made.zip", tmp_path / "tuned.zip", "datastore.gate.safetensors"
    line = ("knn", "add", "--plugin", bundle, "--base", tiny, "--samples", sample, "--retrieval", "sentence", "--quiet")
    assert tailormt(*line, "-o", plugin).code == 0
    ran = tailormt("knn", "tune", plugin, "--base", tiny, "--samples", others, "--quiet", "-o", tuned)
    assert "a learned gate" in ran.out
    with zipfile.ZipFile(plugin) as old, zipfile.ZipFile(tuned) as new:
        changed = {name for name in old.namelist() if old.read(name) != new.read(name)}
    assert {"manifest.json", gate} <= changed <= {"adapter_config.json", "manifest.json", gate}
    fixed = tailormt("knn", "tune", plugin, "--base", tiny, "--samples", others, "--quiet", "--threshold", "0.7", "-o", tuned)
    assert "θ 0.7" in fixed.out
    assert gate not in verify_bundle(tuned)["files"]
    assert len(translate(base, SOURCES, Plugin.load(tuned, base, cache=tmp_path / "cache"))) == len(SOURCES)
    refused = tailormt("knn", "tune", plugin, "--base", tiny, "--samples", others, "--quiet", "--adaptive")
    assert "cannot use the adaptive network" in refused.sentence


def test_tune_in_place_by_default_and_on_what_is_not_in_the_datastore(
    carrying: Path, tailormt: Run, tiny: Path, others: Path, sample: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.zip"
    copy.write_bytes(carrying.read_bytes())
    ran = tailormt("knn", "tune", copy, "--base", tiny, "--samples", others, "--quiet")
    assert ran.code == 0, ran.err
    assert "Held out" in ran.out
    assert "Settings   k " in ran.out
    verify_bundle(copy)


def test_tune_needs_a_datastore(bundle: Path, tailormt: Run, tiny: Path, others: Path) -> None:
    ran = tailormt("knn", "tune", bundle, "--base", tiny, "--samples", others, "--quiet")
    assert "carries no datastore. Add one with `tailormt knn add`." in ran.sentence


def test_a_method_with_a_datastore_needs_no_second(request_for: Callable[..., Any], tmp_path: Path) -> None:
    from engine.errors import OptionError

    request = request_for(tmp_path / "x.zip", method="knn", method_options={}, knn=True)
    with pytest.raises(OptionError, match="The method knn already has its own datastore"):
        customize(request, tmp_path / "workspace")
    assert not (tmp_path / "x.zip").exists()


@pytest.fixture(scope="module", params=["m2m100", "nllb", "mbart50"])
def other_base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    """Layers with the norm first, language codes among the tokens, codes as the decoder's start."""
    from tests.hub_models import make_hub_model

    folder = make_hub_model(request.param, tmp_path_factory.mktemp("bases") / request.param)
    return BaseModel.load(folder, "en", "zh", device="cpu")


@pytest.mark.parametrize("keys", ["output", "ffn_input"])
def test_every_family_of_bases(other_base: BaseModel, keys: str, tmp_path: Path) -> None:
    from engine.base.decoding_options import Decoding
    from engine.methods import get_method
    from engine.methods.knn.build import make_knn
    from engine.methods.knn.module import KnnModule
    from engine.methods.knn.options import KnnOptions

    base = other_base
    pairs = [SentencePair(*pair) for pair in SENTENCES]
    options = KnnOptions(k=1, temperature=1.0, weight=0.99, keys=keys)
    knn, _, _ = make_knn(base, pairs, pairs, options, tmp_path / "knn")
    assert not set(knn.datastore.tokens.tolist()) & set(base.family.direction_ids())
    plugin = Plugin(get_method("knn"), KnnModule(knn), {})
    fast = Decoding(beam=2, max_length_ratio=2.0)
    vanilla, scores = translate(base, SOURCES, decoding=fast), score(base, SENTENCES)
    targets = [target for _, target in SENTENCES[:4]]
    translations = translate(base, SOURCES, plugin, decoding=fast)
    if base.model.config.decoder_start_token_id is not None:  # else decoding starts with one token more than training
        assert [text.replace(" ", "") for text in translations] == targets
    after = score(base, SENTENCES, plugin)  # the datastore holds these very sentences: likelier, or all but certain
    assert all(b > a or b > -0.02 * n for (a, n), (b, _) in zip(scores, after, strict=True))
    assert translate(base, SOURCES, plugin, strength=0.0, decoding=fast) == vanilla
    assert translate(base, SOURCES, decoding=fast) == vanilla
