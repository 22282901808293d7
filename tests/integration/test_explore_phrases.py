"""What is made to be looked at, and what the user decides there, on a base that runs: exclusions, proportions, the map."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora import Corpus
from engine.errors import CorpusError, InputError
from engine.jobs import KINDS, JobContext
from engine.memory import load_pairs
from engine.phrases.exclusions import Exclusions
from engine.phrases.table import open_table
from engine.store import Store
from engine.workflows.customize.pipeline import customize, prepare
from engine.workflows.explore.domain_proportions import PAIRS, explore_plugin, explore_samples, folder_of, read_shown
from engine.workflows.explore.phrase_map import MAP_FILE
from tests.conftest import ROOT


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_phrase_that_was_left_out_is_in_no_memory_and_no_training_pair(request_for: Callable[..., Any], tmp_path: Path) -> None:
    request, work = request_for(tmp_path / "plugin.zip"), tmp_path / "work"
    customize(request, work, stop_after="training")
    pairs = {name: rows(work / name) for name in ("pairs.jsonl", "method/phrase_pairs.jsonl")}
    trained = [row["target"] for row in pairs["pairs.jsonl"] if row["part"] == "train"]
    phrase = next(
        row["target"]
        for row in pairs["method/phrase_pairs.jsonl"]
        if row["length"] >= 2 and sum(row["target"] in text for text in trained) in (1, 2)
    )
    Exclusions.exclude(work, [phrase], sentences=True)
    customize(request, work, stop_after="training")
    memory = load_pairs(work / "method" / "phrase_pairs.jsonl")
    assert memory
    assert not [pair for pair in memory if phrase in pair.target]
    after = rows(work / "pairs.jsonl")
    assert not [row for row in after if row["part"] == "train" and phrase in row["target"]]
    assert [row for row in after if row["part"] == "excluded"]
    assert [row["source"] for row in after] == [row["source"] for row in pairs["pairs.jsonl"]], "written once"
    Exclusions.undo(work)
    customize(request, work, stop_after="training")
    assert {name: rows(work / name) for name in pairs} == pairs


def test_a_phrase_alone_leaves_its_sentences(request_for: Callable[..., Any], tmp_path: Path) -> None:
    request, work = request_for(tmp_path / "plugin.zip"), tmp_path / "work"
    customize(request, work, stop_after="training")
    before = rows(work / "pairs.jsonl")
    phrase = load_pairs(work / "method" / "phrase_pairs.jsonl")[0].target
    Exclusions.exclude(work, [phrase])
    customize(request, work, stop_after="training")
    assert phrase not in [pair.target for pair in load_pairs(work / "method" / "phrase_pairs.jsonl")]
    assert rows(work / "pairs.jsonl") == before


def test_leaving_out_nearly_everything_is_refused(request_for: Callable[..., Any], tmp_path: Path) -> None:
    request, work = request_for(tmp_path / "plugin.zip"), tmp_path / "work"
    prepare(request, work)
    characters = {character for text in Corpus.load(work).texts() for character in text}
    Exclusions.exclude(work, sorted(characters), sentences=True)
    with pytest.raises(CorpusError, match="Include some phrases again"):
        customize(request, work, stop_after="memory")


@pytest.fixture
def context(tiny: Path, request_for: Callable[..., Any], tmp_path: Path) -> JobContext:
    """A project whose samples were read, and a job of it."""
    settings = load_settings()
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    project = store.projects.create("Style", "en", "zh", str(tiny))
    request = request_for(tmp_path / "plugin.zip")
    prepare(request, tmp_path / "work", settings=settings)
    job = store.jobs.enqueue("proportions", {}, project_id=project.id)
    return JobContext(job, store, settings, tmp_path / "work", Progress())


def test_proportions_are_there_before_any_training(context: JobContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.workflows.explore.domain_proportions.WORDS", 400)
    summary = KINDS["proportions"].run(context)
    assert summary["domains"] == ["samples", "general"]
    proportions = read_shown(folder_of(context.workspace))
    for side in ("encoder", "decoder"):
        corpus = proportions["corpus"][side]
        assert len(corpus["layers"]) == len(corpus["histogram"]["counts"])
        for row in corpus["index"]:
            assert sum(row["proportions"]) == pytest.approx(1, abs=1e-3)
            assert sum(row["in"]) == row["count"]
    example = proportions["examples"][0]
    assert [word["text"] for word in example["encoder"]["words"]]
    assert "".join(word["text"] for word in example["decoder"]["words"]) == "".join(example["translation"].split())
    stamp = (folder_of(context.workspace) / PAIRS).stat().st_mtime_ns
    KINDS["proportions"].run(context)
    assert (folder_of(context.workspace) / PAIRS).stat().st_mtime_ns == stamp, "done once"


def test_why_there_are_no_proportions_is_kept(context: JobContext, tmp_path: Path) -> None:
    from engine.base import LanguagePair

    pair = LanguagePair.load(context.store.projects.list()[0].base, "en", "zh")
    segments = Corpus.load(context.workspace).segments
    with pytest.raises(CorpusError, match="general text"):
        explore_samples(segments, pair, tmp_path, tmp_path / "no assets", samples_key="1")
    assert "general text" in read_shown(folder_of(tmp_path))["error"]


def test_a_trained_plugin_has_proportions_of_its_own(tiny: Path, request_for: Callable[..., Any], tmp_path: Path) -> None:
    from engine.base import LanguagePair
    from engine.plugins import Plugin

    options = {"method_options": {"rank": 2, "words": 300}, "training_options": {"max_updates": 2, "warmup": 1}}
    request = request_for(tmp_path / "plugin.zip", method="domain_mixing", **options)
    customize(request, tmp_path / "work")
    pair = LanguagePair.load(tiny, "en", "zh")
    plugin = Plugin.load(request.output, pair.forward, cache=tmp_path / "unpacked")
    with pytest.raises(InputError, match="samples first"):
        explore_plugin(pair.forward, plugin, 7, tmp_path / "work")
    segments = Corpus.load(tmp_path / "work").segments
    before = explore_samples(segments, pair, tmp_path / "work", ROOT / "assets", words=300)
    proportions = explore_plugin(pair.forward, plugin, 7, tmp_path / "work")
    assert read_shown(folder_of(tmp_path / "work", 7)) == proportions
    assert proportions["domains"] == before["domains"]
    for side in ("encoder", "decoder"):
        assert proportions["corpus"][side]["word_count"] == before["corpus"][side]["word_count"], "the same sentences"
        assert [row["text"] for row in proportions["examples"][0][side]["words"]]


def test_the_map_has_every_phrase_at_a_place(context: JobContext) -> None:
    summary = KINDS["phrase_map"].run(context)
    with gzip.open(context.workspace / MAP_FILE, "rt", encoding="utf-8") as file:
        result = json.load(file)
    table = open_table(context.workspace, "zh", ROOT / "assets")
    assert sorted(result["text"]) == sorted(table.texts)
    assert summary["points"] == len(result["x"]) == len(result["y"]) == len(result["layer"]) == len(table)
    assert "frozen base" in result["about"]
    assert len({*zip(result["x"], result["y"], strict=True)}) > len(table) / 2
