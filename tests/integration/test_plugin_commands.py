"""`tailormt plugin` and `tailormt rating` over a project's own plugins and rounds."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.settings import load_settings
from engine.store import ProjectRow, Store
from engine.workflows.human_rating import choose, task
from tests.bases import SENTENCES

Run = Callable[..., Any]


@pytest.fixture
def store(home: Path) -> Store:
    return Store(load_settings().store_url)


@pytest.fixture
def project(store: Store, tiny: Path) -> ProjectRow:
    return store.projects.create("Essays", "en", "zh", str(tiny))


def test_a_plugin_comes_in_is_named_tagged_chosen_given_away_and_deleted(
    tailormt: Run, store: Store, project: ProjectRow, bundle: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        ran = tailormt("plugin", "import", bundle, "--project", project.id, "--json")
        assert ran.code == 0, ran.err
    number = json.loads(ran.out)["id"]
    assert "match" in tailormt("plugin", "verify", bundle, "--project", project.id).out
    assert "Style is now Lu Xun" in tailormt("plugin", "rename", number, "Lu Xun").out
    assert "Lu Xun: client A, draft." in tailormt("plugin", "tag", number, "draft", "client A").out
    assert "uses the base alone" in tailormt("plugin", "default", "--project", project.id).out  # both were imported
    assert "uses the base alone" in tailormt("plugin", "default", "--project", project.id, "base").out
    assert "uses plugin 1, Lu Xun" in tailormt("plugin", "default", "--project", project.id, "1").out
    assert "no plugin's number" in tailormt("plugin", "default", "--project", project.id, "x").sentence
    rows = json.loads(tailormt("plugin", "list", "--json").out)
    assert [(row["id"], row["name"], row["default"], row["tags"]) for row in rows] == [
        (2, "Lu Xun", False, ["client A", "draft"]),
        (1, "Lu Xun", True, ["client A", "draft"]),
    ]
    ran = tailormt("plugin", "export", number, "-o", tmp_path / "given.zip", "--no-with-phrases", "--json")
    assert "phrases.jsonl" not in json.loads(ran.out)["files"]
    assert tailormt("plugin", "delete", number).code == 2, "not without --yes"
    assert "is deleted" in tailormt("plugin", "delete", number, "--yes").out
    assert [row.id for row in store.plugins.list()] == [1]


def test_a_blend_of_two_bundles_translates(
    tailormt: Run, tiny: Path, bundle: Path, tmp_path: Path, request_for: Callable[..., Any]
) -> None:
    from engine.workflows.customize.pipeline import customize

    other = tmp_path / "manuals.zip"
    customize(request_for(other, name="Manuals", method="lhuc", method_options={}), tmp_path / "workspace")
    ran = tailormt("plugin", "blend", f"{bundle}=0.7", other, "-o", tmp_path / "both.zip", "--base", tiny)
    assert "Style (memory_adapter, weight 0.7), Manuals (lhuc, weight 1)" in ran.out
    text = tmp_path / "in.txt"
    text.write_text("\n".join(source for source, _ in SENTENCES) + "\n", encoding="utf-8")
    common = ("--base", tiny, "--source", "en", "--target", "zh", "--plugin", tmp_path / "both.zip", text)
    assert len(tailormt("translate", *common).out.splitlines()) == len(SENTENCES)
    assert "is no number" in tailormt("plugin", "blend", f"{bundle}=much", other, "-o", tmp_path / "x.zip").sentence
    assert not (tmp_path / "x.zip").exists()


def test_a_method_that_reads_sentences_is_refused_before_any_work(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "p.zip"
    ran = tailormt("customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--method",
                   "ngram_memory", "--no-with-phrases", "-o", output, "--workspace", tmp_path / "w")  # fmt: skip
    assert "reads its sentences while it translates" in ran.sentence
    assert not (tmp_path / "w" / "corpus.jsonl").exists()


def test_a_round_from_files_is_rated_shown_and_exported(tailormt: Run, store: Store, project: ProjectRow, tmp_path: Path) -> None:
    files = {"in": [], "mine": [], "theirs": []}  # type: dict[str, list[str]]
    for index, (source, target) in enumerate(SENTENCES):
        files["in"].append(source)
        files["mine"].append(target)
        files["theirs"].append(target if index == 0 else target.replace("。", "！"))
    for name, lines in files.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    new = ("rating", "new", f"Mine={tmp_path / 'mine.txt'}", tmp_path / "theirs.txt", "--input", tmp_path / "in.txt")
    ran = tailormt(*new, "--project", project.id, "--raters", "Mei", "Jan", "--seed", 3, "--json")
    rating = json.loads(ran.out)
    assert (rating["sentences"], rating["same"]) == (7, 1)
    mei = store.ratings.rater(rating["links"]["Mei"].rsplit("/", 1)[1])
    assert mei is not None
    for _ in range(7):
        now = task(store, mei)
        assert now.item is not None
        for question in ("content", "fluency", "style"):
            choose(store, mei, now.item, question, "a" if "！" not in now.a else "b")
    table = tailormt("rating", "show", rating["id"]).out
    assert "Mine against theirs: win means that Mine is better than theirs." in table
    assert "100.0%" in table
    assert json.loads(tailormt("rating", "list", "--json").out)[0]["done"] == 7
    assert tailormt("rating", "export", rating["id"], "-o", tmp_path / "r.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "r.csv").open(encoding="utf-8")))
    assert {row["style"] for row in rows} == {"win"}
    assert tailormt("rating", "export", rating["id"], "-o", tmp_path / "r.json").code == 0
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["summary"]["style"]["sign_test"]["for"] == 7
    assert "end it in .csv or .json" in tailormt("rating", "export", rating["id"], "-o", tmp_path / "r.xls").sentence
    (tmp_path / "in.txt").write_text("one line\n", encoding="utf-8")
    assert "Give a line for a line" in tailormt(*new, "--project", project.id, "--raters", "Mei").sentence
