"""What grows in the store, and in the server: projects, comparisons and their lines, jobs, views of pages."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from studio_pages import BASE

from measures.growing import Call, Item
from measures.growing_files import opened, project_of

__all__ = ["COMPARISONS", "JOBS", "LINES", "PROJECTS", "VIEWS", "WAITING"]

SYSTEMS = [
    {"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
    {"name": "Growth", "plugin_id": None, "method": "memory_adapter", "strength": 1.0},
]
MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
PART = 10_000  # rows in one transaction


def inserted(store: Any, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    from sqlalchemy import insert

    for begin in range(0, len(rows), PART):
        with store.write() as session:
            session.execute(insert(table), rows[begin : begin + PART])


# -- projects


def grow_projects(home: Path, size: int) -> None:
    """Each with a file of samples that was read, phrases, two jobs and a plugin."""
    from engine.store import tables

    service = opened(home)
    store = service.store
    there = len(store.projects.list())
    numbers = range(there + 1, size + 1)
    inserted(store, tables.Project, [
        {"id": n, "name": f"Growth {n}", "source": "en", "target": "zh", "base": str(BASE)} for n in numbers
    ])  # fmt: skip
    inserted(store, tables.Corpus, [
        {"id": n, "project_id": n, "name": "a.txt", "state": "ready", "folder": "", "kept": 500} for n in numbers
    ])  # fmt: skip
    inserted(store, tables.PhraseSet, [{"corpus_id": n, "path": "", "parser": "", "count": 2000} for n in numbers])
    inserted(store, tables.Plugin, [
        {"project_id": n, "name": "Growth", "method": "memory_adapter", "path": "/gone", "imported": False,
         "metrics": {"style": {"bleu": {"score": 20.0, "before": 18.0}}}} for n in numbers
    ])  # fmt: skip
    inserted(store, tables.Job, [finished_job(n, kind) for n in numbers for kind in ("prepare", "customize")])
    for number in numbers:
        samples = service.workspace(number) / "samples"
        samples.mkdir()
        (samples / "a.txt").touch()


def finished_job(project: int, kind: str = "customize") -> dict[str, Any]:
    """A row as a run leaves it: its request, its trail, its result."""
    trail = [{"step": f"Step {index}", "index": index, "begun": MOMENT.isoformat(), "attempt": 1} for index in range(8)]
    return {
        "project_id": project, "kind": kind, "state": "succeeded", "party": f"project {project}", "trail": trail,
        "arguments": {"method": "memory_adapter", "budget": "quick", "samples": ["a.txt"]}, "finished": MOMENT,
        "result": {"kept": 500, "metrics": {name: {"score": 1.0, "before": 2.0} for name in ("bleu", "chrf", "loss")}},
    }  # fmt: skip


def project_calls(home: Path) -> Sequence[Call]:
    from studio.pages.home import home_cards
    from studio.services.projects import project_summaries

    service = opened(home)
    return [
        Call("Home: all cards", lambda: home_cards(project_summaries(service))),
        Call("the frame of a page, polled every two seconds", lambda: service.overview(1)),
        Call("the project that changed last", lambda: service.project(None)),
    ]


# -- comparisons and their lines


def comparison_rows(number: int, project: int, lines: int) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    sheet = {"comparison_id": number, "file": "a.txt", "lines": lines, "systems": SYSTEMS, "figures": {}}
    comparison = {"id": number, "project_id": project, "title": f"Growth {number}", "rows": []}
    return comparison, sheet, [line_row(number, place) for place in range(lines)]


def line_row(number: int, place: int) -> dict[str, Any]:
    texts = [f"这是第{place}句的译文。", f"这是第{place}句的另一种译文。"]
    return {
        "comparison_id": number, "place": place, "source": f"This is sentence {place} of a large file.", "texts": texts,
        "scores": [40.0, 40.0 + place % 7], "done": True, "difference": (place * 7919 % 100) / 100,
        "change": float(place % 7), "reference": texts[0],
    }  # fmt: skip


def grow_comparisons(home: Path, size: int) -> None:
    """Comparisons of ten sentences."""
    from engine.store import tables
    from engine.store.comparisons import ComparisonLine, ComparisonSheet

    store, project = opened(home).store, project_of(home)
    there = len(store.sheets.titles(project.id, limit=size))
    rows = [comparison_rows(number, project.id, 10) for number in range(there + 1, size + 1)]
    inserted(store, tables.Comparison, [comparison for comparison, _, _ in rows])
    inserted(store, ComparisonSheet, [sheet for _, sheet, _ in rows])
    inserted(store, ComparisonLine, [line for _, _, lines in rows for line in lines])


def shown(home: Path) -> Callable[..., Callable[[], Any]]:
    """Draws a page of a comparison's table, as a function to be called: its number, order and first line."""
    from studio.components.compare_url import CompareUrl
    from studio.components.comparison_parts import menus_of, table_of
    from studio.services.comparisons import Comparisons

    comparisons, project = Comparisons(opened(home)), project_of(home)

    def page(number: str = "", order: str = "place", offset: int = 0) -> Callable[[], Any]:
        def run() -> tuple[str, str]:
            sheet = comparisons.sheet(project, number)
            url = CompareUrl(comparison=sheet.comparison_id if sheet else 0, order=order, offset=offset)
            return table_of(comparisons, project, url, sheet), menus_of(comparisons, project, sheet)

        return run

    return page


def comparison_calls(home: Path) -> Sequence[Call]:
    page = shown(home)
    return [Call("Compare: the newest, and the menu of the others", page()), Call("Compare: the oldest", page("1"))]


def grow_lines(home: Path, size: int) -> None:
    from engine.store import tables
    from engine.store.comparisons import ComparisonLine, ComparisonSheet

    store, project = opened(home).store, project_of(home)
    for record in store.comparisons.list(project.id):
        store.comparisons.delete(record.id)
    comparison, sheet, _ = comparison_rows(1, project.id, 0)
    inserted(store, tables.Comparison, [comparison])
    inserted(store, ComparisonSheet, [{**sheet, "lines": size}])
    for begin in range(0, size, PART):
        inserted(store, ComparisonLine, [line_row(1, place) for place in range(begin, min(size, begin + PART))])


def line_calls(home: Path) -> Sequence[Call]:
    sheets, page = opened(home).store.sheets, shown(home)
    last = sheets.get(1).lines - 25
    return [
        Call("Compare: the first page", page("1")),
        Call("Compare: the last page", page("1", offset=last)),
        Call("Compare: the most different first", page("1", order="difference")),
        Call("the done ones counted, as a job does after every 16", lambda: sheets.count(1)[0]),
        Call("the next ones without a translation", lambda: sheets.pending(1, 16)),
        Call("all read, as for an export", lambda: sum(1 for _ in sheets.lines(1)), once=True),
        Call("another strength: all have to be made again", lambda: sheets.set_strength(1, 1, 0.5), once=True),
    ]


# -- jobs


def grow_jobs(home: Path, size: int) -> None:
    """Jobs of one project, done."""
    from engine.store import tables

    store, project = opened(home).store, project_of(home)
    there = len(store.jobs.list(project.id))
    for begin in range(there, size, PART):
        inserted(store, tables.Job, [finished_job(project.id) for _ in range(begin, min(size, begin + PART))])


def grow_waiting(home: Path, size: int) -> None:
    """Jobs of a hundred projects, waiting."""
    from engine.store import tables

    store = opened(home).store
    if not store.projects.list():
        inserted(store, tables.Project, [
            {"id": n, "name": f"Growth {n}", "source": "en", "target": "zh", "base": str(BASE)} for n in range(1, 101)
        ])  # fmt: skip
    there = len(store.jobs.list(states=["queued"]))
    row = {"kind": "customize", "arguments": {}, "state": "queued"}
    inserted(store, tables.Job, [{**row, "project_id": n % 100 + 1, "party": f"project {n % 100 + 1}"} for n in range(there, size)])


def claimed(store: Any) -> Callable[[], Any]:
    """A job claimed, and put back."""

    def run() -> None:
        job = store.jobs.claim("growth")
        store.jobs.give_way(job.id, job.attempt)

    return run


def job_calls(home: Path) -> Sequence[Call]:
    service, project = opened(home), project_of(home)
    store = service.store
    store.jobs.enqueue("customize", {}, project_id=project.id)
    return [
        Call("one claimed by a worker, and put back", claimed(store)),
        Call("the frame of a page, polled every two seconds", lambda: service.overview(project.id)),
        Call("Samples: the last job that read them", lambda: service.reading(project.id)),
        Call("Phrases: the last job of a kind", lambda: service.store.jobs.newest(project.id, "phrase_map")),
        Call("Train: all runs", lambda: service.runs(project.id)),
    ]


def waiting_calls(home: Path) -> Sequence[Call]:
    service = opened(home)
    store = service.store
    running = store.jobs.list(limit=1)[0]
    return [
        Call("one claimed by a worker, and put back", claimed(store)),
        Call("whether another one goes first", lambda: store.jobs.first_before(running, anyone=True)),
        Call("the frame of a page, polled every two seconds", lambda: service.overview(1)),
    ]


# -- views of pages


def grow_views(home: Path, size: int) -> None:
    project_of(home)
    (home / "views").write_text(str(size), encoding="ascii")


def view_calls(home: Path) -> Sequence[Call]:
    """Samples opened one after the other, each time by another browser: the page, and the events that fill it."""
    from starlette.testclient import TestClient

    from engine.core.settings import Settings
    from studio.app import create_app

    size, project = int((home / "views").read_text(encoding="ascii")), project_of(home)
    app = create_app(Settings(home=str(home), device="cpu", threads=1))
    client = TestClient(app, base_url="http://127.0.0.1:7860").__enter__()
    config = client.get("/config").json()
    page_ids = set(config["page"]["samples"]["dependencies"])
    numbers = itertools.count()
    fills = [
        event for event in config["dependencies"] if event["id"] in page_ids and "load" in {what for _, what in event["targets"]}
    ]

    def views() -> None:
        for number in itertools.islice(numbers, size):
            session = f"view {number}"
            assert client.get("/samples", params={"project": project.id}).status_code == 200
            for event in fills:
                body = {"data": [None] * len(event["inputs"]), "fn_index": event["id"], "session_hash": session}
                client.post("/gradio_api/queue/join", json={**body, "event_data": None, "trigger_id": None})
            answer = client.get("/gradio_api/queue/data", params={"session_hash": session})
            assert answer.text.count('"success":true') == len(fills), answer.text[:500]

    return [Call("Samples: opened so many times, each by a new browser", views, once=True)]


PROJECTS = Item("projects", "Projects", 1, 10_000, grow_projects, project_calls)
COMPARISONS = Item("comparisons", "Comparisons of a project", 1, 10_000, grow_comparisons, comparison_calls)
LINES = Item("lines", "Lines of a comparison", 100, 100_000, grow_lines, line_calls)
JOBS = Item("jobs", "Jobs that a project has had", 1, 100_000, grow_jobs, job_calls)
WAITING = Item("waiting", "Jobs that wait", 1, 100_000, grow_waiting, waiting_calls)
VIEWS = Item("views", "Views of a page", 10, 1_000, grow_views, view_calls)
