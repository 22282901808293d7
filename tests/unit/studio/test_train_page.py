"""The page Train in its parts: cards, the form and its address, what is shown of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from engine.core.options import describe
from engine.errors import InputError, OptionError
from engine.methods import get_method, method_names
from engine.store import JobRow, ProjectRow
from engine.training import budget_options
from engine.workflows.customize.request import AUTO, CustomizeRequest, candidates
from engine.workflows.estimate import Estimate
from studio.components.import_status import translations_card
from studio.components.layout import sidebar_status
from studio.components.method_cards import (
    MethodCard,
    automatic_card,
    can_look_up,
    estimate_line,
    lacking,
    method_card,
    method_cards,
)
from studio.components.plots import MEASURES, bleu_curve, overlaid
from studio.components.preview_card import look_card, look_rows
from studio.components.run_cards import compare_card, device_card, figure_card, log_card, progress_card, runs_table
from studio.components.train_form import PlanForm, plan_in_address
from studio.i18n.labels import label
from studio.services.projects import project_summaries
from studio.services.runs import WATCH, Runs, own_settings
from studio.services.service import Service

BASE = Path(__file__).resolve().parents[3] / "assets" / "models" / "en-zh"
SAMPLE = {"sample_source": "<b>The rain", "sample_reference": "雨竟还不曾停歇。"}
ROWS: list[dict[str, Any]] = [
    {"step": 0, "valid_loss": 5.2, "style_bleu": 2.0, "general_bleu": 13.0, "sample_translation": "雨还没有停。", **SAMPLE},
    {"step": 10, "nll": 4.9, "tokens_per_second": 900.0},
    {"step": 50, "valid_loss": 4.6, "style_bleu": 4.5, "general_bleu": 12.5, "sample_translation": "雨不曾停。", **SAMPLE},
]


@pytest.fixture
def project(service: Service) -> ProjectRow:
    row = service.create_project("Lu Xun", "en", "zh", str(BASE))
    folder = service.workspace(row.id)
    (folder / "samples").mkdir()
    (folder / "samples" / "a.txt").write_text("雨还在下。\n", encoding="utf-8")
    lines = [json.dumps({"text": f"第{i}句，雨还在下。", "domain": ""}, ensure_ascii=False) for i in range(400)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return row


def request_of(method: str, budget: str, base: str, **more: Any) -> CustomizeRequest:
    return CustomizeRequest(method=method, budget=budget, base=base, **more)


@pytest.fixture
def form() -> PlanForm:
    return PlanForm()


def job(service: Service, project: ProjectRow, **changes: Any) -> JobRow:
    row = service.store.jobs.enqueue("customize", {"method": "memory_adapter", "budget": "quick"}, project_id=project.id)
    return replace(row, **changes)


# -- cards


def test_every_method_has_a_card_that_says_what_it_costs_here(service: Service, project: ProjectRow) -> None:
    estimates = Runs(service).estimates(project, project.base, "quick")
    assert set(estimates) == {AUTO, *method_names()}
    assert estimates[AUTO].seconds > estimates["memory_adapter"].seconds > estimates["knn"].seconds
    cards = [method_card(service, project, get_method(name), estimates[name]) for name in method_names()]
    cards = [automatic_card(estimates[AUTO]), *cards]
    page = method_cards(cards, "memory_adapter")
    assert page.count('role="radio"') == len(method_names()) + 1 == 15
    assert page.count('aria-checked="true"') == 1
    assert page.count("≈") == 15 - page.count("disabled")
    assert "10 more methods" in page
    assert "<details" in method_cards(cards, "memory_adapter")
    assert "<details" in method_cards(cards, "lhuc")
    assert '<details class="tm-more-methods" open>' in method_cards(cards, "lhuc"), "the chosen one is seen"


def test_a_method_that_lacks_something_says_what_and_what_to_do() -> None:
    cards = [
        MethodCard("a", "Memory adapter", "Reads <phrases>.", ""),
        MethodCard("b", "Domain mixing", "Experts.", "", "needs 2 domains", "Add a file of another domain."),
    ]
    page = method_cards(cards, "a")
    assert 'data-method="a" aria-checked="true" tabindex="0">' in page
    assert 'data-method="b" aria-checked="false" tabindex="-1" disabled>' in page
    assert "needs 2 domains" in page
    assert "Add a file of another domain." in page
    assert "&lt;phrases&gt;" in page


def test_what_is_lacking_depends_on_samples_and_settings(service: Service, project: ProjectRow) -> None:
    assert lacking(service, project, get_method("memory_adapter")) == ("", "")
    assert lacking(service, project, get_method("llm_prompt"))[0] == "needs a service"
    named = Service(service.settings.replace(endpoints=("https://api.example.com/v1",)))
    assert lacking(named, project, get_method("llm_prompt")) == ("", "")
    assert lacking(service, project, get_method("domain_mixing")) == ("", ""), "general Chinese is bundled"
    french = replace(project, target="fr")
    assert lacking(service, french, get_method("domain_mixing"))[0] == "needs 2 domains"


def test_knn_goes_on_top_of_what_gives_probabilities() -> None:
    able = {name for name in method_names() if can_look_up(get_method(name))}
    assert "memory_adapter" in able
    assert not {"knn", "llm_prompt", "rewrite"} & able


def test_the_estimate_says_how_sure_it_is_and_what_would_not_fit() -> None:
    estimate = Estimate(372, 300, 465, {"training": 300.0}, 2 * 2**30, 38_000_000, 41_000_000, 9, "measured", "CPU, 2 threads")
    machine = {"memory": 24 * 2**30, "free_memory": 20 * 2**30, "free_disk": 10**12}
    line = estimate_line(estimate, machine)
    assert "<b>6 min</b>" in line
    assert "memory <b>2.0</b> of 24 GiB" in line
    assert "5 min to 8 min, from earlier runs on this machine." in line
    assert "Lower tokens_per_batch" in estimate_line(estimate, {**machine, "free_memory": 2**30})
    assert "Free some space first" in estimate_line(estimate, {**machine, "free_disk": 1000})


# -- the form


def test_a_form_left_alone_is_the_budget_with_translations_watched(form: PlanForm, project: ProjectRow) -> None:
    for method in form.names:
        for budget in ("quick", "balanced", "best"):
            plan = request_of(method, budget, project.base)
            planned = form.plan(project, [method, budget, False, None, form.text(method, budget, form.values(plan))])
            assert planned == form.plan(project, [method, budget, False, None, ""])
            assert planned == request_of(method, budget, project.base, training_options={"watch": WATCH})


def test_what_was_changed_goes_through_the_address_and_back(form: PlanForm, project: ProjectRow, service: Service) -> None:
    runs = Runs(service)
    plan = request_of(
        "lhuc", "quick", project.base, knn=True, method_options={"speed": 5.0},
        training_options={"max_updates": 7, "watch": WATCH}, knn_options={"k": 8},
    )  # fmt: skip
    planned = form.plan(project, ["lhuc", "quick", True, project.base, form.text("lhuc", "quick", form.values(plan))])
    assert planned == plan
    address = form.address(planned, project)
    assert address["base"] == address["clone"] == ""
    back, says = plan_in_address(runs, form, project, address)
    assert back == plan
    assert says == ""
    left_alone = request_of("lhuc", "quick", project.base, training_options={"watch": WATCH})
    assert form.address(left_alone, project)["set"] == ""


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "<script>", "budget": "huge", "base": "/etc"},
        {"set": "[1, 2"},
        {"set": '{"training_options": {"max_updates": -3}}'},
        {"set": '{"method_options": {"surprise": 1}}'},
        {"set": '{"training_options": 5}'},
        {"clone": "999"},
        {"clone": "x"},
    ],
)
def test_an_address_that_cannot_be_leads_to_a_form_that_can(
    form: PlanForm, project: ProjectRow, service: Service, asked: dict[str, str]
) -> None:
    plan, _ = plan_in_address(Runs(service), form, project, asked)
    form.check(plan)
    assert (plan.method, plan.budget, plan.base) == (AUTO, "balanced", project.base)


def test_a_bad_value_is_named(form: PlanForm, project: ProjectRow) -> None:
    values = form.values(request_of("lhuc", "quick", project.base, training_options={"max_updates": -5}))
    with pytest.raises(OptionError, match="max_updates: -5 is below"):
        form.plan(project, ["lhuc", "quick", False, None, form.text("lhuc", "quick", values)])


@pytest.mark.parametrize("held", ["", "[", "[1]", "5", '{"of": "lhuc"}', '{"of": "lhuc", "values": 5}', '{"values": {"a": 1}}'])
def test_fields_that_hold_nothing_are_those_of_the_budget(form: PlanForm, project: ProjectRow, held: str) -> None:
    planned = form.plan(project, ["lhuc", "quick", False, None, held])
    assert planned == request_of("lhuc", "quick", project.base, training_options={"watch": WATCH})


def test_fields_of_another_method_are_not_taken(form: PlanForm, project: ProjectRow) -> None:
    values = form.values(request_of("knn", "quick", project.base, training_options={"max_updates": 3}))
    planned = form.plan(project, ["lhuc", "quick", False, None, form.text("knn", "quick", values)])
    assert planned == request_of("lhuc", "quick", project.base, training_options={"watch": WATCH})


@pytest.mark.parametrize("method", method_names())
def test_every_setting_of_a_method_has_a_field_with_its_label_and_help(form: PlanForm, method: str) -> None:
    page = lxml.html.fromstring(form.fields(method, "quick", True, form.values(request_of(method, "quick", ""))))
    fields = {element.get("id"): element for element in page.iter() if element.tag in ("input", "select")}
    labels = {element.get("for"): "".join(element.itertext()) for element in page.iter("label")}
    texts = {element.get("id"): "".join(element.itertext()) for element in page.iter("p")}
    kinds = form.classes(method)
    if not can_look_up(form.methods[method]):
        kinds.pop("knn")
    for kind, cls in kinds.items():
        for item in describe(cls):
            field = fields.pop(f"tm-{kind}-{item.name}")
            assert labels[field.get("id")] == label(item.name, cls)
            assert texts[field.get("aria-describedby")] == item.help
    assert not fields


def test_a_clone_has_the_settings_of_its_run(form: PlanForm, service: Service, project: ProjectRow) -> None:
    runs = Runs(service)
    plan = request_of(
        "lhuc", "quick", project.base, knn=True, method_options={"speed": 5.0},
        training_options={"max_updates": 7, "watch": 3}, knn_options={"k": 8},
    )  # fmt: skip
    started = service.start_run(project, plan)
    again, says = plan_in_address(runs, form, project, {"clone": str(started.id)})
    assert again == plan
    assert "earlier run" in says
    assert own_settings(CustomizeRequest.of_job(started.arguments))["training_options"]["max_updates"] == 7
    other = service.create_project("Other", "en", "zh", str(BASE))
    with pytest.raises(InputError, match="no longer exists"):
        runs.request_of(other, str(started.id))


def test_another_base_of_a_run_becomes_the_projects(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    other = tmp_path / "other"
    service.start_run(project, request_of("lhuc", "quick", str(other)))
    assert service.store.projects.get(project.id).base == str(other)


def test_every_budget_has_an_estimate_and_done_steps_shorten_it(service: Service, project: ProjectRow) -> None:
    runs = Runs(service)
    plan = request_of("memory_adapter", "quick", project.base)
    first = runs.estimate(project, plan)
    stamps = {"samples": "s", "phrases": "p", "phrases of": "s", "pairs": "q", "pairs of": "s", "sources of": "old"}
    (service.workspace(project.id) / "steps.json").write_text(json.dumps(stamps), encoding="utf-8")
    assert runs.done(project, project.base) == {"phrases", "pairs"}
    assert runs.done(project, "/another") == set()
    later = runs.estimate(project, plan)
    assert first is not None
    assert later is not None
    assert later.seconds < first.seconds
    assert budget_options("quick", "memory_adapter")["training"]["max_minutes"] * 60 >= later.parts["training"]


def test_sources_of_earlier_samples_are_not_counted_again(service: Service, project: ProjectRow) -> None:
    runs = Runs(service)
    plan = request_of("memory_adapter", "quick", project.base)
    folder = service.workspace(project.id)
    texts = [json.loads(line)["text"] for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    before = runs.estimate(project, plan)
    rows = [{"source": "The rain.", "target": text, "synthetic": True} for text in texts[: len(texts) // 2]]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    assert runs.written(project) == pytest.approx(len(rows) / len(texts))
    after = runs.estimate(project, plan)
    assert before is not None
    assert after is not None
    assert after.parts["sources"] == pytest.approx(before.parts["sources"] * (1 - len(rows) / len(texts)), rel=0.05)
    assert runs.done(project, project.base) == set()
    other = runs.estimate(project, plan.replace(base=str(Path(project.base).parent / "de-en")))
    assert other is not None
    assert other.parts["sources"] > after.parts["sources"], "another base's reverse model writes its own"


# -- runs


def test_the_queue_is_shown_in_its_order(service: Service, project: ProjectRow) -> None:
    runs = Runs(service)
    jobs = [service.start_run(project, request_of("lhuc", "quick", project.base)) for _ in range(3)]
    assert runs.queue_positions() == {jobs[0].id: 0, jobs[1].id: 1, jobs[2].id: 2}
    claimed = service.store.jobs.claim("here:1:a")
    assert claimed is not None
    assert claimed.id == jobs[0].id
    listed = runs.of(project.id)
    assert runs.displayed_run(listed, "") == listed[-1], "the one at work"
    assert runs.displayed_run(listed, str(jobs[2].id)) == listed[0]
    table = runs_table(listed, {}, project, runs.queue_positions(), [jobs[0].id])
    assert "waiting, no. 2" in table
    assert "waiting, no. 3" in table
    assert table.count('data-act="cancel"') == 3
    assert table.count("checked") == 1
    service.store.jobs.cancel(jobs[1].id)
    assert service.store.jobs.get(jobs[1].id).state == "cancelled"
    assert runs.queue_positions() == {jobs[2].id: 1}


def test_a_run_shows_how_far_it_is_and_what_it_says_now(service: Service, project: ProjectRow) -> None:
    running = job(service, project, state="running", step="Training", step_index=5, steps=7, done=62.0, total=100.0, eta=125.0)
    progress = progress_card(running, 4, ROWS)
    assert "Run 4 · Memory adapter · quick" in progress
    assert "62 of 100 · 2 min left in this step · 900 tokens/s" in progress
    card = figure_card(running, ROWS, project)
    assert "style BLEU" in card
    assert "<b>4.600</b>" in card
    assert "&lt;b&gt;The rain" in card
    assert '<mark class="new">' in card
    assert "2 versions so far" in card
    assert "雨竟还不曾停歇。" in card
    assert 'data-act="cancel"' in card
    waiting = replace(running, state="queued", step="")
    assert "2 ahead in the queue" in progress_card(waiting, 4, [], 2)
    assert "It makes way." in progress_card(replace(waiting, note="It makes way."), 4, ROWS)
    stopped = replace(running, state="interrupted", error="The worker was stopped.")
    assert "The worker was stopped." in progress_card(stopped, 4, ROWS)
    assert 'data-act="resume"' in figure_card(stopped, ROWS, project)
    assert f"clone={running.id}" in figure_card(stopped, ROWS, project)


def test_a_run_that_gave_way_is_paused_and_not_waiting_to_begin(service: Service, project: ProjectRow) -> None:
    run = service.start_run(project, request_of("lhuc", "quick", project.base))
    claimed = service.store.jobs.claim("here:1:a")
    assert claimed is not None
    assert "Starts when a worker is free" not in sidebar_status(service.overview(project.id))
    assert service.store.jobs.give_way(run.id, claimed.attempt)
    (paused,) = runs = Runs(service).of(project.id)
    says = "Paused for another job; continues by itself"
    card, frame = progress_card(paused, 1, ROWS), sidebar_status(service.overview(project.id))
    assert says in card
    assert ">paused</span>" in card
    assert "when it starts" not in card
    assert says in frame
    assert "Starts when a worker is free" not in frame
    assert ">paused</span>" in runs_table(runs, {}, project, Runs(service).queue_positions())
    assert [summary.state[0] for summary in project_summaries(service)] == ["training: paused"]


def test_a_run_that_ran_out_of_time_says_so_and_goes_on_for_as_long_again(service: Service, project: ProjectRow) -> None:
    short = {"stopped_by": "max_minutes", "updates": 41, "most_updates": 200}
    done = replace(job(service, project), state="succeeded", result=short)
    card = progress_card(done, 1, ROWS)
    assert "Training stopped at the time limit after 41 of 200 updates." in card
    assert 'data-act="go_on"' in card
    assert "go_on" not in progress_card(replace(done, result={**short, "stopped_by": "patience"}), 1, ROWS)
    tried = [{"method": "knn", "knn": False, "chosen": False}, {"method": "lhuc", "knn": True, "chosen": True}]
    several = replace(done, arguments={**done.arguments, "method": AUTO}, result={**short, "method": "lhuc", "tried": tried})
    card = progress_card(several, 1, ROWS)
    assert "Continue trains the method that was chosen, LHUC gates, without trying the others again." in card
    assert 'data-act="go_on"' in card
    runs = Runs(service)
    with pytest.raises(InputError, match="did not stop at the time limit"):
        runs.continued(project, replace(done, state="failed"))
    again = runs.continued(project, done)
    assert again.arguments["continues"] == done.id
    assert again.arguments["training_options"]["max_minutes"] == 10, "quick has five"
    best = runs.continued(project, several).arguments
    assert (best["method"], best["knn"], best["continues"]) == ("lhuc", True, done.id)
    scores = {"bleu": 12.0, "chrf": 14.0, "general_bleu": 25.0, "seconds": 9.0}
    weakened = [{"method": "fine_tuning", "knn": False, "chosen": True, "shrink": 0.4, **scores}]
    weak = replace(several, result={**short, "method": "fine_tuning", "tried": weakened})
    assert runs.continued(project, weak).arguments["method_options"] == {"shrink": 0.4}
    assert "<b>Fine-tuning (shrink 0.4)</b>" in figure_card(weak, ROWS, project)
    older = [{"method": "knn", "knn": False, "chosen": True, **scores}]
    assert "<b>kNN-MT</b>" in figure_card(replace(several, result={**short, "tried": older}), ROWS, project)


def test_a_run_warns_where_its_plugin_does_harm(service: Service, project: ProjectRow) -> None:
    done = job(service, project, state="succeeded")
    metrics = {"bleu_vanilla": 14.8, "bleu": 15.0, "bleu_p": 0.299}
    metrics |= {"general_bleu_vanilla": 20.0, "general_bleu": 18.7, "general_bleu_p": 0.03}
    plugin = service.store.plugins.create(project.id, "x", method="lhuc", path="x.zip", metrics=metrics, job_id=done.id)
    assert "general text loses 1.3 BLEU" in progress_card(done, 1, ROWS, plugin=plugin)
    assert "general text" not in progress_card(done, 1, ROWS)


def test_the_device_and_the_log_of_a_run(service: Service, project: ProjectRow) -> None:
    running = job(service, project, state="running")
    assert device_card(running, None, 2) == ""
    service.store.usage.note(running.id, cpu=142.4, memory=1_400_000_000, peak=1_700_000_000, gpu=2**30, gpu_total=2**34)
    card = device_card(running, service.store.usage.get(running.id), 2)
    assert "CPU 1.4 of 2 cores" in card
    assert "memory 1.3 GiB · peak 1.6 GiB · GPU 1.0 of 16 GiB" in card
    log = log_card("\n".join(f"line {i} <b>" for i in range(100)))
    assert "line 99 &lt;b&gt;" in log
    assert "line 10 " not in log
    line = "2026-11-21 10:36:11,936 INFO engine.jobs.progress: Finding phrases (step 2 of 7)"
    assert "<pre>10:36:11  Finding phrases (step 2 of 7)</pre>" in log_card(line)


def test_runs_are_compared_by_what_differs(service: Service, project: ProjectRow) -> None:
    first = job(service, project, arguments={"method": "lhuc", "budget": "quick", "training_options": '{"max_updates": 7}'},
              result={"updates": 7, "bytes": 1_200_000})  # fmt: skip
    second = job(service, project, arguments={"method": "lhuc", "budget": "best", "knn": True}, result={"updates": 900})
    metrics = {"bleu": 13.1, "bleu_vanilla": 7.8, "bleu_p": 0.01, "general_bleu": 10.1, "general_bleu_vanilla": 10.2}
    plugin = service.store.plugins.create(project.id, "x", method="lhuc", path="x.zip", metrics=metrics, job_id=first.id)
    card = compare_card([(1, first), (2, second)], {first.id: plugin})
    assert "7.8 → 13.1 (p 0.010)" in card
    assert "10.2 → 10.1" in card
    assert "max updates" in card
    assert "set by the budget" in card
    assert "kNN retrieval" in card
    assert "base" not in card.replace("tm-", ""), "it is the same"
    assert "1.2 MB" in card


def test_compared_settings_are_called_as_the_form_calls_them(service: Service, project: ProjectRow) -> None:
    def compared(method: str, setting: str, values: tuple[int, int]) -> str:
        variants = [{"method": method, "budget": "quick", "method_options": {setting: value}} for value in values]
        return compare_card(list(enumerate((job(service, project, arguments=variant) for variant in variants), 1)), {})

    card = compared("density_ratio", "order", (2, 3))
    assert "n-gram order" in card
    assert ">order<" not in card
    assert "Density ratio" in card
    assert "LoRA alpha" in compared("fine_tuning", "lora_alpha", (8, 16))


def test_curves_lie_over_each_other() -> None:
    for measure in MEASURES:
        chart = overlaid([("run 1", ROWS), ("run 2", ROWS[:1])], measure)
        assert [line.name for line in chart.data] == ["run 1", "run 2"]
    assert list(overlaid([("run 1", ROWS)], "valid_loss").data[0].y) == [5.2, 4.6]
    assert list(overlaid([("run 1", ROWS)], "nll").data[0].y) == [4.9]
    assert list(overlaid([("run 1", [])], "nll").data[0].y) == [None], "a run without points is in the legend"
    chart = bleu_curve(ROWS, 100)
    assert list(chart.data[1].y) == [13.0, 12.5]


# -- the first look

FOUND = {
    "rows": [
        {"kind": "plain", "source": "Same.", "vanilla": "一样。", "customized": "一样。"},
        *({"kind": "plain", "source": f"{i} <i>", "vanilla": "旧的", "customized": "新的"} for i in range(6)),
        {"kind": "held out", "source": "Own.", "vanilla": "甲", "customized": "乙", "reference": "我的句子。"},
    ],
    "differ": 7, "sentences": 447, "loss": 4.69, "loss_base": 5.16, "seconds": {"a": 20.0, "b": 21.0},
}  # fmt: skip


def test_a_look_shows_what_changed_first_and_one_of_the_users_own(service: Service, project: ProjectRow) -> None:
    rows = look_rows(FOUND)
    assert len(rows) == 5
    assert "Same." not in [row["source"] for row in rows]
    assert rows[-1]["reference"] == "我的句子。"
    card = look_card(project, None, FOUND)
    assert "7 of 8 sentences change · 447 sentences looked up · held-out loss 5.16 → 4.69" in card
    assert "built in 41 s" in card
    assert "&lt;i&gt;" in card
    assert '<mark class="new">' in card


def test_a_look_with_translations_says_the_score_and_else_what_they_are_worth(project: ProjectRow) -> None:
    assert "several times larger" in look_card(project, None, FOUND)
    card = look_card(project, None, {**FOUND, "sourced": 1.0, "bleu_base": 10.4, "bleu": 19.1})
    assert "BLEU of 8 held-out sentences 10.4 → 19.1" in card
    assert "several times larger" not in card
    assert 'data-make="1"' in card


def looked(source: str, customized: str, vanilla: float, agreement: float, **more: Any) -> dict[str, Any]:
    both = {"vanilla": vanilla, "customized": agreement}
    return {"kind": "plain", "source": source, "vanilla": "雨。", "customized": customized, "agreement": both, "flags": {}, **more}


def test_a_look_shows_the_meaning_beside_the_style_and_only_what_the_base_can_translate(project: ProjectRow) -> None:
    rows = [
        looked("Fine.", "雨停了。", 70.0, 66.0),
        looked("Lost.", "天。", 60.0, 20.0),
        looked("Looping.", "将将将将将。", 60.0, 50.0, flags={"customized": "repetition"}),
        looked("Unreadable.", "x", 22.0, 90.0),
        looked("Base loops.", "x", 90.0, 90.0, flags={"vanilla": "repetition"}),
    ]
    card = look_card(project, None, {**FOUND, "rows": rows, "agreement_base": 63.3, "agreement": 45.3})
    assert "Unreadable" not in card
    assert "Base loops" not in card
    assert "meaning, by back-translation (chrF) 63 → 45" in card
    assert "Meaning is lost: after back-translation the sentences match their sources with chrF 45 instead of 63" in card
    assert card.count("Much of the meaning may be lost") == 1
    assert card.count("repeats itself") == 1
    assert "Meaning is lost" not in look_card(project, None, {**FOUND, "rows": rows, "agreement_base": 63.3, "agreement": 60.0})
    assert "Use a better base" in look_card(project, None, {**FOUND, "rows": rows[3:]})


def test_a_sample_that_repeats_itself_is_flagged_while_it_trains(service: Service, project: ProjectRow) -> None:
    row = {"step": 50, "valid_loss": 4.0, "sample_source": "It will rain.", "sample_translation": "将将将将将"}
    assert "repeats itself" in figure_card(job(service, project), [row], project)
    assert "repeats itself" not in figure_card(job(service, project), [{**row, "sample_translation": "雨将至。"}], project)


def test_the_method_is_left_to_the_run_unless_one_is_chosen(project: ProjectRow, service: Service, form: PlanForm) -> None:
    plan, _ = plan_in_address(Runs(service), form, project, {})
    assert plan.method == AUTO
    cards = method_cards([method_card(service, project, get_method("knn")), automatic_card()], AUTO)
    assert cards.index('data-method="auto"') < cards.index('data-method="knn"')
    assert "recommended" in cards
    planned = form.plan(project, [AUTO, "quick", True, None, form.text(AUTO, "quick", form.values(plan.replace(budget="quick")))])
    assert (planned.method_options, planned.knn) == ({}, False), "kNN decoding is tried anyway"
    assert candidates(planned.replace(samples=("a",)))[0].method == "knn"


def test_the_samples_page_says_what_translations_are_worth() -> None:
    assert translations_card(0, 0) == ""
    assert "No sentence has a translation." in translations_card(40, 0)
    assert "30 of 40 sentences" in translations_card(40, 30)
    assert "several times larger" in translations_card(40, 30)
    assert "gains the most" in translations_card(40, 40)


def test_a_look_is_asked_for_once(service: Service, project: ProjectRow) -> None:
    runs = Runs(service)
    assert "Show a first look" in look_card(project, *runs.look(project))
    first = runs.look_again(project)
    assert runs.look_again(project).id == first.id
    assert "when a worker is free" in look_card(project, *runs.look(project))
    failed = replace(first, state="failed", error="No <base> can translate back.")
    assert "No &lt;base&gt; can translate back." in look_card(project, failed, {})
    assert "Try again" in look_card(project, failed, {})
