"""Pages stay small and quick however large a project is; `bench/studio_pages.py` measures them."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.core.settings import Settings
from engine.store.comparisons import ComparisonLineRow
from studio.components.layout import PAGES
from studio.services.service import Service
from tests.bases import EN_ZH, ROOT, SAMPLES

sys.path.insert(0, str(ROOT / "bench"))

import studio_pages

HEAVY = ("torch", "transformers", "stanza", "faiss", "plotly", "lingua", "sacrebleu", "sklearn", "onnxruntime")
MOST_ROWS = 150  # table rows of a page
MOST_SHOWN = 400_000  # characters that a page is filled with


def test_importing_the_studio_loads_no_model_library_and_no_gradio() -> None:
    code = f"import sys, studio.app; print(*[name for name in {(*HEAVY, 'gradio', 'pandas')} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_bench_names_the_pages_that_are_slow_or_did_not_come() -> None:
    measured = {"import": 1.0, "first page": 2.1, "pages": {slug: {"switch": 0.3} for slug in studio_pages.THERE}}
    measured["pages"] |= {"train": {"switch": 0.301}, "rate": {"first": 0.2}}  # type: ignore[operator]
    over = studio_pages.over_limits(measured)
    assert [line.partition(":")[0] for line in over] == ["first page", "step to train", "step to rate"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """12,000 sentences of real clauses, 30,000 phrases, a comparison of 3,000 lines, a round, 30 runs with plugins."""
    from engine.corpora import import_corpus
    from engine.phrases import Phrase, PhraseSet
    from engine.workflows.human_rating import RoundPlan, new_round, texts_of

    service = Service(Settings(home=str(tmp_path_factory.mktemp("home")), device="cpu"))
    store = service.store
    project = store.projects.create("Large", "en", "zh", str(EN_ZH))
    folder = service.workspace(project.id)
    clauses = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()
    texts = [f"{clauses[i % 400][:-1]}，{clauses[(i * 7 + i // 400) % 480]}" for i in range(12_000)]
    (folder / "samples").mkdir()
    (folder / "samples" / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    import_corpus([folder / "samples" / "a.txt"], "zh").save(folder)
    runs = list(dict.fromkeys(text[i : i + n] for text in texts[:4000] for n in (3, 4, 5) for i in range(0, 20, 3)))
    phrases = [Phrase(text=run, length=len(run), count=2, label="NP", example=0) for run in runs[:30_000] if run.strip()]
    PhraseSet(phrases, "x").save(folder / "phrases.jsonl")
    corpus = store.corpora.create(project.id, "a.txt", folder=str(folder))
    report = json.loads((folder / "import_report.json").read_text(encoding="utf-8"))
    store.corpora.update(corpus.id, state="ready", kept=len(texts), skipped={}, report=report)
    store.phrase_sets.create(corpus.id, str(folder / "phrases.jsonl"), "x", len(phrases))
    for number in range(30):
        job = store.jobs.enqueue("customize", {"method": "lhuc", "budget": "quick"}, project_id=project.id)
        store.jobs.cancel(job.id)
        store.plugins.create(project.id, f"Large {number}", method="lhuc", path=str(folder / "x.zip"), job_id=job.id)
    systems = [{"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
               {"name": "Large 1", "plugin_id": 1, "method": "lhuc", "strength": 1.0}]  # fmt: skip
    sheet = store.sheets.create(project.id, "x", [(f"Sentence {n}.", None) for n in range(3000)], systems, file="x.txt")
    done = [ComparisonLineRow(n, f"Sentence {n}.", None, texts[n : n + 2], [None, None], 0.5, None) for n in range(3000)]
    store.sheets.fill(sheet.comparison_id, sheet.revision, done)
    new_round(store, project.id, texts_of(store, sheet.comparison_id), RoundPlan("vanilla", "Large 1", raters=["Ann"]))
    return service


def shown(value: Any) -> str:
    """All text that an event gives to a page."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(map(shown, value.values()))
    return "".join(map(shown, value)) if isinstance(value, (list, tuple)) else ""


@pytest.mark.slow
def test_a_page_is_filled_with_a_part_of_a_large_project(large: Service) -> None:
    from studio.pages.mount import build

    demo = build(large.settings, large)
    request = SimpleNamespace(query_params={"project": "1"}, headers={"host": "127.0.0.1"}, cookies={}, username=None)
    seen: dict[str, int] = {}
    for block in demo.fns.values():
        if block.fn is None or not any(event == "load" for _, event in block.targets):
            continue
        fill = inspect.unwrap(block.fn)
        if list(inspect.signature(fill).parameters)[:1] != ["request"]:
            continue
        needed = [parameter for parameter in inspect.signature(fill).parameters.values() if parameter.default is parameter.empty]
        if len(needed) > 1:
            continue
        result = fill(request)
        text = shown(list(result) if inspect.isgenerator(result) else result)
        name = fill.__module__.removeprefix("studio.").removeprefix("pages.")
        assert text.count("<tr") <= MOST_ROWS, f"{name} shows {text.count('<tr')} rows"
        assert len(text) <= MOST_SHOWN, f"{name} shows {len(text):,} characters"
        seen[name] = max(seen.get(name, 0), len(text))
    assert set(PAGES) - {"samples"} <= set(seen), "each page has an event that fills it"
    assert seen["phrases"] > 10_000


def test_a_page_of_sentences_is_read_without_the_others(large: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.services import jsonl_pages as lines

    file: Path = large.workspace(1) / "corpus.jsonl"
    result = lines.open_lines(file)
    assert result is not None
    parsed: list[bytes] = []
    real = lines._parsed
    monkeypatch.setattr(lines, "_parsed", lambda raw: (parsed.append(raw), real(raw))[1])
    assert len(result.get(range(600, 610))) == len(parsed) == 10
