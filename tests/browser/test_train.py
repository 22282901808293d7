"""The page Train as a user meets it: the form, the queue, a run that is watched, runs compared, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.store import JobRow, ProjectRow, Store
from engine.training import budget_options
from engine.training.metrics_log import read_metrics
from engine.workflows.customize.request import CustomizeRequest
from studio.services.service import Service
from tests.browser.conftest import BASE, SAMPLE, Studio, free_settings, served
from tests.waiting import until

FIRST: dict[str, Any] = {
    "style_bleu": 2.1,
    "general_bleu": 13.4,
    "sample_source": "The rain.",
    "sample_translation": "雨。",
    "samples": [["The rain.", "雨。", None], ["The snow.", "雪。", None]],
}
LATER: dict[str, Any] = {
    "style_bleu": 3.9,
    "general_bleu": 13.0,
    "sample_source": "The rain.",
    "sample_translation": "雨停。",
    "samples": [["The rain.", "雨停。", None], ["The snow.", "雪融。", None]],
}
ROWS: list[dict[str, Any]] = [
    {"step": 0, "valid_loss": 5.2, **FIRST},
    {"step": 10, "nll": 5.1, "tokens_per_second": 940.0},
    {"step": 50, "nll": 4.1, "tokens_per_second": 950.0},
    {"step": 50, "valid_loss": 4.2, **LATER},
]


def updates(budget: str) -> str:
    return str(budget_options(budget, "memory_adapter")["training"]["max_updates"])


def run_of(studio: Studio, project: ProjectRow, state: str, rows: list[dict[str, Any]] | None = None, **more: Any) -> JobRow:
    """A run with its curve. One that is "running" needs `alive` about it."""
    from engine.store import tables

    with studio.store.write() as session:
        record = tables.Job(
            kind="customize",
            project_id=project.id,
            arguments={"method": "memory_adapter", "budget": "quick", **more.pop("arguments", {})},
            state=state,
            worker="test",
            heartbeat=tables.now(),
            started=tables.now(),
            finished=None if state == "running" else tables.now(),
            **more,
        )
        session.add(record)
        session.flush()
        number = record.id
    folder = studio.workspace(project) / "runs" / str(number) / "training"
    folder.mkdir(parents=True)
    lines = [json.dumps(row) for row in rows or []]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return studio.store.jobs.get(number)


@contextlib.contextmanager
def alive(studio: Studio, run: JobRow) -> Iterator[None]:
    """Signs of life of a run that no process works at: without them it is taken for dead after twenty seconds, and begun."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(2.0):
            studio.store.jobs.heartbeat(run.id, run.attempt)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


AT_WORK: dict[str, Any] = {"step": "Training", "step_index": 5, "steps": 8, "done": 62.0, "total": 100.0, "eta": 125.0}


def test_a_run_is_watched_queued_behind_and_cancelled(studio: Studio, page: Any) -> None:
    project = studio.project("Watch")
    run = run_of(studio, project, "running", ROWS, **AT_WORK)
    studio.store.usage.note(run.id, cpu=142.0, memory=1_500_000_000, peak=1_600_000_000)
    with alive(studio, run):
        page.goto(f"{studio.url}/train?project={project.id}")
        for _ in range(2):
            expect(page.get_by_text("62 of 100 · 2 min left in this step · 950 tokens/s")).to_be_visible()
            expect(page.locator(".js-plotly-plot .js-line").first).to_be_visible()
            expect(page.locator(".block.tm-foot")).to_contain_text("Making a plugin · 70 %")
            expect(page.get_by_text("CPU 1.4 of")).to_be_visible()
            expect(page.locator(".tm-sample mark.new").first).to_be_visible()
            page.get_by_label("Sentence to monitor").select_option("The snow.")
            expect(page.locator(".tm-sample")).to_contain_text("雪融。")
            page.reload()
            expect(page.locator(".tm-sample")).to_contain_text("雪融。")
        # Another run waits for it, and can be taken out of the queue again.
        page.get_by_text("Quick", exact=True).click()
        page.get_by_role("button", name="Add to the queue").click()
        expect(page.locator(".tm-runs")).to_contain_text("waiting, no. 2")
        waiting = studio.store.jobs.list(project.id)[0]
        assert waiting.state == "queued"
        assert waiting.arguments["training_options"]["watch"] > 0
        page.locator(".tm-runs").get_by_role("button", name="Cancel").first.click()
        expect(page.locator(".tm-runs")).to_contain_text("cancelled")
        assert studio.store.jobs.get(waiting.id).state == "cancelled"
        page.goto(f"{studio.url}/train?project={project.id}&run={run.id}")
        page.get_by_role("button", name="Cancel").first.click()
        expect(page.get_by_text("Cancelling").first).to_be_visible()
        assert studio.store.jobs.get(run.id).cancel_requested
        studio.store.jobs.cancelled(run.id, run.attempt)
        expect(page.get_by_role("button", name="Resume").first).to_be_visible()


def test_choices_within_a_moment_are_all_kept_whichever_is_answered_first(studio: Studio, page: Any) -> None:
    project = studio.project("Quick hands")
    page.goto(f"{studio.url}/train?project={project.id}")
    expect(page.get_by_role("radio", name="Automatic")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".tm-segments input").first).to_be_enabled()
    late: list[Any] = []
    page.route("**/queue/join*", lambda call: call.continue_() if late else late.append(call))
    page.get_by_role("radio", name="Memory adapter").click()
    until(lambda: page.wait_for_timeout(20) or late)
    page.get_by_text("Quick", exact=True).click()
    page.wait_for_url(re.compile("method=memory_adapter&budget=quick"))
    page.get_by_role("button", name="Advanced settings").click()
    expect(page.get_by_label("Phrases per layer")).to_be_visible()
    with page.expect_response(re.compile("/queue/join")):
        late[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_label("Phrases per layer")).to_be_visible()
    expect(page.get_by_label("Max updates")).to_have_value(updates("quick"))
    expect(page.get_by_text("Quick", exact=True)).to_be_visible()
    page.get_by_role("button", name="Start training").click()
    run = until(lambda: next(iter(studio.store.jobs.list(project.id)), None))
    studio.store.jobs.cancel(run.id)
    assert (run.arguments["method"], run.arguments["budget"]) == ("memory_adapter", "quick")
    assert set(run.arguments["training_options"]) <= {"watch"}


def test_a_double_click_starts_one_run_and_cancels_it_for_good(studio: Studio, page: Any) -> None:
    project = studio.project("Double")

    def twice(button: Any, done: Any) -> None:
        """A double click whose second part comes when the first has been answered, as on a fast machine."""
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.click(x, y)
        until(done)
        page.wait_for_timeout(3000)
        page.mouse.down(click_count=2)
        page.mouse.up(click_count=2)
        page.wait_for_timeout(2000)

    other = run_of(studio, project, "running", ROWS, **AT_WORK)  # so that what is started waits
    with alive(studio, other):
        page.goto(f"{studio.url}/train?project={project.id}&method=lhuc&budget=quick")
        start = page.get_by_role("button", name="Add to the queue")
        expect(start).to_be_enabled()
        twice(start, lambda: len(studio.store.jobs.list(project.id)) == 2)
        assert len(studio.store.jobs.list(project.id)) == 2
        waiting = studio.store.jobs.list(project.id)[0]
        cancel = page.locator(f".tm-runs [data-act=cancel][data-job='{waiting.id}']")
        twice(cancel, lambda: studio.store.jobs.get(waiting.id).state == "cancelled")
        expect(page.locator(f".tm-runs [data-act=resume][data-job='{waiting.id}']")).to_be_visible()
        assert studio.store.jobs.get(waiting.id).state == "cancelled"
        studio.store.jobs.cancelled(other.id, other.attempt)


def test_the_form_follows_budget_and_method_and_survives_a_reload(studio: Studio, page: Any) -> None:
    project = studio.project("Budget")
    page.goto(f"{studio.url}/train?project={project.id}")
    expect(page.get_by_role("radio", name="Automatic")).to_have_attribute("aria-checked", "true")
    page.get_by_role("radio", name="Memory adapter").click()
    expect(page.get_by_role("radio", name="Memory adapter")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".tm-before")).to_contain_text(re.compile("Before you start: .* GiB · disk .*B · CPU"))
    page.get_by_role("button", name="Advanced settings").click()
    field = page.get_by_label("Max updates")
    expect(field).to_be_visible()
    expect(field).to_have_value(updates("balanced"))
    field.fill("5")
    page.get_by_label("Seed").fill("9")
    page.get_by_text("Quick", exact=True).click()
    expect(field).to_have_value(updates("quick"))  # what was changed by hand gives way to a budget
    expect(page.get_by_label("Seed")).to_have_value("1")
    expect(field).to_be_visible()
    text = page.locator(".tm-before").inner_text()
    field.fill("3")  # so few that the time limit counts on no machine
    field.blur()
    expect(page.locator(".tm-before")).not_to_have_text(text)
    page.get_by_role("radio", name="Memory adapter").press("ArrowRight")
    expect(page.get_by_role("radio", name="kNN-MT")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_label("Add kNN retrieval")).to_be_disabled()
    page.wait_for_url(re.compile("method=knn"))
    page.get_by_role("radio", name="Residual adapters").click()
    page.get_by_label("Add kNN retrieval").check()
    page.wait_for_url(re.compile("knn=yes"))
    field.fill("78")
    field.blur()
    page.wait_for_url(re.compile("max_updates"))
    page.reload()
    expect(page.get_by_role("radio", name="Residual adapters")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_label("Add kNN retrieval")).to_be_checked()
    page.get_by_role("button", name="Advanced settings").click()
    expect(field).to_have_value("78")
    field.fill("-3")
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_text("max_updates: -3 is below the smallest allowed value, 0.").first).to_be_visible()
    assert studio.store.jobs.list(project.id) == []


def test_a_run_is_cloned_and_runs_are_compared(studio: Studio, page: Any) -> None:
    project = studio.project("Clone")
    first = run_of(studio, project, "succeeded", ROWS, arguments={"training_options": '{"max_updates": 7}'}, result={"updates": 7})
    second = run_of(studio, project, "succeeded", ROWS, arguments={"method": "lhuc"}, result={"updates": 50})
    metrics = {"bleu": 13.1, "bleu_vanilla": 7.8, "general_bleu": 10.1, "general_bleu_vanilla": 10.2}
    studio.store.plugins.create(project.id, "x", method="lhuc", path="x.zip", metrics=metrics, job_id=second.id)
    page.goto(f"{studio.url}/train?project={project.id}")
    late: list[Any] = []  # what is asked after the first tick, and not answered before the second comes

    def hold(call: Any) -> None:
        if late or f'"{first.id}"' not in (call.request.post_data or ""):
            call.continue_()
        else:
            late.append(call)

    page.route("**/queue/join*", hold)
    page.locator(f"[data-run='{first.id}']").click()
    until(lambda: page.wait_for_timeout(20) or late)
    page.locator(f"[data-run='{second.id}']").click()
    expect(page.get_by_text("10.2 → 10.1")).to_be_visible()
    late[0].continue_()
    for run in (first, second):
        expect(page.locator(f"[data-run='{run.id}']")).to_be_checked()
    expect(page.get_by_text("10.2 → 10.1")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    page.wait_for_url(re.compile(f"runs={second.id}%2C{first.id}|runs={first.id}%2C{second.id}"))
    page.reload()
    expect(page.get_by_text("10.2 → 10.1")).to_be_visible()
    page.locator(".tm-runs").get_by_role("link", name="Clone").last.click()
    page.wait_for_url(re.compile(f"clone={first.id}"))
    expect(page.get_by_text("The settings of an earlier run.")).to_be_visible()
    page.get_by_role("button", name="Advanced settings").click()
    expect(page.get_by_label("Max updates")).to_have_value("7")


@pytest.mark.slow
def test_nothing_is_lost_when_studio_and_worker_are_killed(chromium: Any, tmp_path: Path) -> None:
    from engine.jobs import stop_background_worker
    from engine.jobs.processes import end_tree

    settings = free_settings(tmp_path / "home")
    store, service = Store(settings.store_url), Service(settings)
    sample = tmp_path / "short.txt"
    sample.write_text("\n".join(SAMPLE.read_text(encoding="utf-8").splitlines()[:60]) + "\n", encoding="utf-8")
    project = service.create_project("Killed", "en", "zh", str(BASE))
    folder = service.workspace(project.id) / "samples"
    folder.mkdir()
    (folder / "short.txt").write_bytes(sample.read_bytes())
    options = {
        "max_updates": 5000,
        "max_minutes": None,
        "validate_every": 10,
        "checkpoint_every": 5,
        "patience": 0,
        "watch": 2,
        "replay": 0.0,
    }
    run = service.start_run(project, CustomizeRequest(method="lhuc", budget="quick", training_options=options))
    curve = service.workspace(project.id) / "runs" / str(run.id) / "training" / "metrics.jsonl"

    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    try:
        with served(settings) as (url, process):
            page = context.new_page()
            # The rows up to 20 are followed by checkpoints by then, so none of them is made again after the kill.
            until(lambda: any(row["step"] >= 30 for row in read_metrics(curve)))
            page.goto(f"{url}/train?project={project.id}")
            expect(page.get_by_text(re.compile(r"\d+ of 5,000"))).to_be_visible()
            process.kill()
            (worker,) = store.workers.list(within=None)
            end_tree(worker.pid)
        before = [row for row in read_metrics(curve) if row["step"] <= 20]
        with served(settings) as (url, _):
            page = context.new_page()  # the old one loads itself anew as soon as the studio is back
            page.goto(f"{url}/train?project={project.id}")
            until(lambda: store.jobs.get(run.id).attempt == 2)  # it goes on by itself
            expect(page.locator(".js-plotly-plot .js-line").first).to_be_visible()
            until(lambda: read_metrics(curve)[-1]["step"] >= 40)
            assert [row for row in read_metrics(curve) if row["step"] <= 20] == before
            expect(page.get_by_text(re.compile(r"\d+ of 5,000"))).to_be_visible()
            store.jobs.cancel(run.id)
            until(lambda: not store.jobs.get(run.id).active)
    finally:
        context.close()
        stop_background_worker(settings)
