"""`tailormt plugin swap`: other samples for a plugin without training, from the command line."""

import json
import zipfile

import pytest

from engine.decoding.translate import translate
from engine.plugins import Plugin, verify_bundle
from engine.workflows.customize.pipeline import customize
from tests.bases import SENTENCES
from tests.integration.test_methods import TRAINING, weights

SMALL = {
    "ngram_memory": {"neighbours": 2, "neighbours_translating": 2},
    "translation_memory": {"warm_updates": 2, "memory_layers": 1, "retriever_layers": 1, "neighbours": 2},
}


@pytest.fixture(scope="module")
def made(request_for, tmp_path_factory):
    result = {}

    def make(name):
        if name not in result:
            folder = tmp_path_factory.mktemp(name)
            request = request_for(
                folder / "plugin.zip", method=name, method_options=SMALL[name],
                training_options={**TRAINING, "max_updates": 2, "validate_every": 2},
            )  # fmt: skip
            customize(request, folder / "workspace")
            result[name] = folder / "plugin.zip"
        return result[name]

    return make


@pytest.mark.parametrize("name", list(SMALL))
def test_a_plugin_takes_other_samples_and_keeps_its_weights(name, made, tiny, base, tailormt, tmp_path):
    samples = tmp_path / "others.txt"
    samples.write_text("\n".join(target for _, target in SENTENCES) + "\n", encoding="utf-8")
    old, new = made(name), tmp_path / "new.zip"
    ran = tailormt("plugin", "swap", old, "--samples", samples, "-o", new, "--base", tiny)
    assert ran.code == 0, ran.err
    assert "8 sentences to look up" in ran.out
    card = verify_bundle(new)
    assert card["method"] == name
    assert card["metrics"] == {}
    assert card["provenance"]["sentences"] == 8
    assert weights(new) == weights(old)
    with zipfile.ZipFile(new) as bundle:
        rows = [json.loads(line) for line in bundle.read("pairs.jsonl").decode("utf-8").splitlines()]
    assert [row["target"] for row in rows] == [target for _, target in SENTENCES]
    # Sources are written by the base where the method needs them, and only there.
    assert all(row.get("source") for row in rows) is (name == "ngram_memory")
    plugin = Plugin.load(new, base, cache=tmp_path / "unpacked")
    read = plugin.attributions(base, "The rain stopped.", "雨停了。")
    assert {item["text"] for row in read for item in row["items"]} <= {target for _, target in SENTENCES}
    assert translate(base, ["The rain stopped."], plugin)


def test_a_method_that_looks_nothing_up_says_so(bundle, tailormt, tmp_path):
    (tmp_path / "others.txt").write_text("雨停了。\n", encoding="utf-8")
    ran = tailormt("plugin", "swap", bundle, "--samples", tmp_path / "others.txt", "-o", tmp_path / "new.zip")
    assert "memory_adapter has learned its samples into its weights, so they" in ran.sentence
    assert not (tmp_path / "new.zip").exists()


def test_samples_that_cannot_be_used_leave_nothing_behind(made, tiny, tailormt, tmp_path):
    (tmp_path / "others.txt").write_text("\n", encoding="utf-8")
    arguments = ("--samples", tmp_path / "others.txt", "-o", tmp_path / "new.zip", "--base", tiny)
    ran = tailormt("plugin", "swap", made("ngram_memory"), *arguments)
    assert ran.sentence
    assert not (tmp_path / "new.zip").exists()
