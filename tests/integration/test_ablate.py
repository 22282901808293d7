"""`tailormt plugin ablate` on plugins made by the main job: figures, their JSON, and what is refused."""

import json

import pytest

from engine.methods.ablation import KINDS
from engine.workflows.customize.pipeline import customize
from tests.integration.test_methods import TRAINING

SMALL = {
    "knn": {"k": 4, "temperature": 10, "weight": 0.5},
    "ngram_memory": {"neighbours": 2, "neighbours_translating": 2},
    "translation_memory": {"warm_updates": 2, "memory_layers": 1, "retriever_layers": 1, "neighbours": 2},
}
LINES = {"src": ["The rain stopped.", "I waited for a letter."], "ref": ["雨停了。", "我等一封信，然而终于没有来。"]}


@pytest.fixture
def given(tmp_path):
    """Flags with sources, references and general text that has its sources."""
    for name, lines in LINES.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    general = [("The door is old.", "门是旧的。"), ("He went home.", "他回家去了。"), ("It is late today.", "今天很晚了。")]
    rows = "".join(f"{en}\t{zh}\n" for en, zh in general)
    (tmp_path / "general.tsv").write_text(f"en\tzh\n{rows}", encoding="utf-8")
    return ("--source-file", tmp_path / "src", "--reference", tmp_path / "ref", "--phrase-option", "parser=statistical",
            "--foreign", tmp_path / "general.tsv", "--beam", 1)  # fmt: skip


@pytest.mark.parametrize("name", [*SMALL, "memory_adapter"])
def test_each_memory_has_its_row(name, request_for, bundle, tiny, tailormt, given, tmp_path):
    plugin = bundle
    if name in SMALL:
        plugin = tmp_path / "plugin.zip"
        request = request_for(
            plugin, method=name, method_options=SMALL[name], training_options={**TRAINING, "max_updates": 2, "validate_every": 2}
        )
        customize(request, tmp_path / "workspace")
    ran = tailormt("plugin", "ablate", plugin, *given, "--base", tiny, "-o", tmp_path / "out", "--json", "--quiet")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (report["method"], report["lines"]) == (name, 2)
    rows = {row["memory"]: row for row in report["variants"]}
    assert list(rows) == ["true", *KINDS]
    for kind, row in rows.items():
        assert {"bleu", "chrf", "nll", "p"} < set(row)
        assert (row["p"] is None) is (kind == "true")
        assert row["nll"] > 0
        text = (tmp_path / "out" / f"{kind}.txt").read_text(encoding="utf-8")
        assert text.splitlines() == row["translations"]
    if name != "memory_adapter":
        assert rows["empty"]["translations"] == report["base"]["translations"]


def test_some_memories_as_a_table(bundle, tiny, tailormt, given):
    ran = tailormt("plugin", "ablate", bundle, *given, "--base", tiny, "--against", "oracle,empty", "--quiet")
    assert ran.code == 0, ran.err
    names = [line.split("  ")[0] for line in ran.out.splitlines()]
    assert names[2:6] == ["no plugin", "true", "empty", "oracle"]
    assert "nats per target token" in ran.out


def test_what_cannot_be_compared_is_one_sentence(bundle, request_for, tiny, tailormt, given, tmp_path):
    ablate = ("plugin", "ablate", bundle, *given, "--base", tiny)
    assert "no memory 'nosie'" in tailormt(*ablate, "--against", "nosie").sentence
    (tmp_path / "ref").write_text("雨停了。\n", encoding="utf-8")
    assert "2 source sentences and 1 references" in tailormt(*ablate).sentence
    (tmp_path / "ref").unlink()
    assert str(tmp_path / "ref") in tailormt(*ablate).sentence
    other = tmp_path / "lhuc.zip"
    customize(request_for(other, method="lhuc", method_options={}), tmp_path / "workspace")
    assert "method lhuc has no memory" in tailormt("plugin", "ablate", other, *given, "--base", tiny).sentence
