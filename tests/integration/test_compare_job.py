"""The job that fills and measures a comparison: every figure that the command line gives, with the project's terms."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import InputError
from engine.jobs import enqueue
from engine.jobs.handlers import compare
from engine.jobs.paths import job_workspace
from engine.jobs.registry import KINDS, JobContext
from engine.store import Store
from engine.workflows.compare.metric_rows import figure_rows, share_rows
from engine.workflows.compare.systems import systems_of
from engine.workflows.compare.translate_missing import ENFORCED
from tests.bases import SENTENCES


@pytest.fixture
def settings(home: Path, tiny: Path) -> Settings:
    return Settings(home=str(home), device="cpu")


def measured(settings: Settings, tiny: Path, bundle: Path, enforced: str = "", **arguments: str) -> dict[str, object]:
    """The figures of four sentences with references by the base alone and a plugin."""
    store = Store(settings.store_url)
    project = store.projects.create("Style", "en", "zh", str(tiny))
    row = store.plugins.create(project.id, "Ours", method="memory_adapter", path=str(bundle))
    sheet = store.sheets.create(project.id, "Four", list(SENTENCES[:4]), systems_of([row], [1.0], enforced), file="four.tsv")
    job = enqueue(store, "compare", {"comparison_id": sheet.comparison_id, **arguments}, project_id=project.id)
    KINDS[job.kind].do(JobContext(job, store, settings, job_workspace(settings, job), Progress()))
    return dict(store.sheets.get(sheet.comparison_id).figures)


def test_a_comparison_has_ter_randomisation_lengths_copies_and_terms(settings: Settings, tiny: Path, bundle: Path) -> None:
    english, chinese = SENTENCES[0]
    word = next(word for word in english.rstrip(".").split() if len(word) > 3)
    figures = measured(settings, tiny, bundle, enforced="these", terms=f"# ours\n{word} = {chinese[:1]}\n{chinese[-2:]}\n")
    assert figures["notes"][0] == ENFORCED  # type: ignore[index]
    rows = [row for row in figure_rows(figures) if row.kind == "text"]
    assert {row.metric for row in rows} == {"bleu", "chrf", "ter", "terms"}
    assert {row.system for row in rows} == {"vanilla", "Ours"}
    assert all((row.p is None) == (row.p_ar is None) == (row.system == "vanilla") for row in rows)
    assert {(share.name, share.system) for share in share_rows(figures)} == {
        (name, system) for name in ("length", "copied") for system in ("vanilla", "Ours")
    }


def test_without_terms_none_are_counted_and_long_comparisons_are_measured_less_closely(
    settings: Settings, tiny: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "CLOSELY", 3)
    figures = measured(settings, tiny, bundle)
    rows = figure_rows(figures)
    assert {row.metric for row in rows if row.kind == "text"} == {"bleu", "chrf"}
    assert all(row.p_ar is None for row in rows)
    assert any("use `tailormt evaluate` to compute" in note for note in figures["notes"])  # type: ignore[attr-defined]


def test_arguments_are_checked_when_it_is_queued() -> None:
    assert compare.check({"comparison_id": "4", "terms": ""}) == {"comparison_id": 4}
    with pytest.raises(InputError, match="needs comparison_id"):
        compare.check({"terms": "a"})
