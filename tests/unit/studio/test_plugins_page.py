"""The cards of plugins, imports on their way, and what a rating round shows."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import shutil
from pathlib import Path

import pytest

from engine.core.progress import Progress
from engine.errors import InputError
from engine.evaluation.rater_agreement import QUESTIONS, summarize
from engine.jobs.registry import KINDS, JobContext, enqueue
from engine.plugins.library import by_name
from engine.plugins.repack import amend
from engine.store import JobRow, PluginRow, ProjectRow
from engine.workflows.human_rating import RoundPlan, Texts, choose, new_round, sides, task, texts_of
from studio.components.ablation import lines_of
from studio.components.plugin_boxes import blend_box, bring_in, check_list, default_menu
from studio.components.plugin_cards import card_data, plugin_cards
from studio.components.rating_results import manage_box, rater_table, result_cards, verdict
from studio.components.rating_results import result as rating_result
from studio.services.plugin_imports import PendingImports
from studio.services.service import Service

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
HOSTILE = "<img src=x onerror=alert(1)>'\"&"


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.store.projects.create("Golden", "en", "zh", str(GOLDEN / "format-1" / "base"))


def plugin(service: Service, project: ProjectRow, name: str, bundle: Path, **more: object) -> PluginRow:
    folder = service.library.folder(project.id) / f"{len(service.store.plugins.list()) + 1}.zip"
    shutil.copy(bundle, folder)
    return service.store.plugins.create(project.id, name, method="memory_adapter", path=str(folder), **more)  # type: ignore[arg-type]


def shown(service: Service, project: ProjectRow, **more: object) -> str:
    rows = service.store.plugins.list(project.id)
    return plugin_cards(by_name(rows), {row.id: card_data(row) for row in rows}, project, **more)  # type: ignore[arg-type]


def test_a_card_says_what_the_plugin_was_made_from(service: Service, project: ProjectRow) -> None:
    plugin(service, project, "Golden", GOLDEN / "format-1" / "plugin.zip", metrics={"bleu_vanilla": 7.8, "bleu": 13.4})
    page = shown(service, project)
    assert "Built from 60 sentences and" in page
    assert "by Tailor MT 0.1.0" in page
    assert "<td>temperature</td><td>0.5</td>" in page
    assert "7.8 → <b>13.4</b>" in page
    assert "Download without phrases" in page


def test_a_card_warns_of_a_plugin_that_does_harm(service: Service, project: ProjectRow) -> None:
    metrics = {"bleu_vanilla": 14.8, "bleu": 15.0, "bleu_p": 0.299}
    metrics |= {"general_bleu_vanilla": 20.0, "general_bleu": 18.7, "general_bleu_p": 0.03}
    row = plugin(service, project, "Golden", GOLDEN / "format-1" / "plugin.zip", metrics=metrics)
    says = "general text loses 1.3 BLEU. Choose another method or add samples. The plugin is kept but"
    assert says in shown(service, project, default=row.id)
    service.store.plugins.update(row.id, metrics=metrics | {"bleu_p": 0.01})
    assert says not in shown(service, project)


def test_versions_of_one_name_are_one_card_with_older_ones_folded(service: Service, project: ProjectRow) -> None:
    rows = [plugin(service, project, "Golden", GOLDEN / "format-1" / "plugin.zip") for _ in range(3)]
    page = shown(service, project, default=rows[1].id)
    assert page.count("<article") == 1
    assert "version 3" in page
    assert "2 older versions" in page
    assert page.index("version 2</b>") < page.index("version 1</b>")
    assert f'data-act="delete" data-number="{rows[0].id}"' in page
    assert page.count(">default</span>") == 2, "on the plugin, and on the version"


def test_what_a_user_gave_is_text_on_a_card(service: Service, project: ProjectRow) -> None:
    row = plugin(service, project, HOSTILE, GOLDEN / "format-1" / "plugin.zip")
    page = shown(service, project, tags={row.id: [HOSTILE]}, wanted=HOSTILE)
    page += default_menu([row], row.id) + blend_box([card_data(row), card_data(row)]) + check_list(HOSTILE, [], done=HOSTILE)
    assert "<img" not in page
    assert "&lt;img" in page
    gone = service.store.plugins.create(project.id, "Gone", method="knn", path=f"/nowhere/{HOSTILE}.zip")
    page = shown(service, project)
    assert "The bundle of Gone no longer exists." in page
    assert "/nowhere" not in page
    assert "<img" not in page
    assert not card_data(gone).blendable


def test_a_blend_is_made_of_plugins_with_a_dial(service: Service, project: ProjectRow) -> None:
    plain = card_data(plugin(service, project, "One", GOLDEN / "format-1" / "plugin.zip"))
    assert blend_box([plain]) == ""
    blend = card_data(plugin(service, project, "Blend", GOLDEN / "format-2" / "plugin.zip"))
    blend = type(blend)(service.store.plugins.update(blend.row.id, method="blend"), blend.metadata, blend.card)
    assert plain.blendable
    assert not blend.blendable
    assert "Blended from Golden (memory adapter, weight 0.6), Golden" in shown(service, project)


def test_a_method_that_reads_sentences_says_why_they_stay(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    amend(GOLDEN / "format-1" / "plugin.zip", tmp_path / "p.zip", card={"method": "ngram_memory"})
    plugin(service, project, "Looks up", tmp_path / "p.zip")
    page = shown(service, project)
    assert "reads your sentences while it translates" in page
    assert "Download without phrases" not in page


def test_an_import_shows_its_checks_and_ends_in_the_project(service: Service, project: ProjectRow) -> None:
    for expected in ("Imported as Golden.", "Imported as version 2 of Golden."):
        steps = list(bring_in(service, project, GOLDEN / "format-1" / "plugin.zip"))
        assert len(steps) == 10, "one at the start, one a check, one at the end"
        assert "checking" in steps[0]
        assert expected in steps[-1]
    rows = service.store.plugins.list(project.id)
    assert len({row.path for row in rows}) == 2
    assert all(row.exists for row in rows)
    assert list((service.library.folder(project.id) / "incoming").iterdir()) == []


def test_a_failed_import_leaves_nothing_and_a_licence_waits(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.zip"
    spoilt.write_bytes(b"PK no bundle")
    assert "Nothing was imported." in list(bring_in(service, project, spoilt))[-1]
    incoming = PendingImports(service, project)
    key = incoming.keep(GOLDEN / "format-1" / "plugin.zip")
    assert all(check.ok for check in incoming.checks(key, "golden.zip"))
    incoming.ask(key, "golden.zip", "CC BY-NC 4.0. Not for commercial use.")
    (waiting,) = PendingImports(service, project).waiting()
    assert (waiting.name, service.store.plugins.list(project.id)) == ("golden.zip", [])
    row = incoming.finish(waiting.key)
    assert row.name == "Golden"
    assert incoming.waiting() == []
    for wrong in (waiting.key, "../../tailor", "0" * 16):
        with pytest.raises(InputError, match="has expired"):
            incoming.finish(wrong)


# -- ratings


def saved(service: Service, project: ProjectRow, rows: list[dict[str, object]]) -> Texts:
    return texts_of(service.store, service.store.comparisons.create(project.id, "Rain", rows).id)


def test_a_round_as_the_page_shows_it(service: Service, project: ProjectRow) -> None:
    rows = [{"source": f"s{n}", "vanilla": "a", "customized": f"b{n}", "plugin": HOSTILE} for n in range(9)]
    row = new_round(
        service.store,
        project.id,
        saved(service, project, rows),
        RoundPlan(HOSTILE, "vanilla", raters=[HOSTILE, "Jan"], about={"examples": []}),
    )
    assert result_cards(service.store, row) == ""
    mei, jan = service.store.ratings.raters(row.id)
    for rater, wins in ((mei, 9), (jan, 8)):
        for _ in range(9):
            now = task(service.store, rater)
            assert now.item is not None
            first = "a" if sides(row)[now.item] else "b"
            for question in QUESTIONS:
                choose(service.store, rater, now.item, question, first if now.item < wins else "same")
    page = result_cards(service.store, row)
    assert "is better in content, fluency and style." in page
    assert "p = 0.004" in page
    assert '<td class="num">94.4 %</td>' in page
    page += rater_table([mei, jan], service.store.ratings.done(row.id), row, "http://host:7860") + manage_box(row, [mei, jan])
    assert f"http://host:7860/rating/{mei.token}" in page
    assert page.count(">done<") == 2
    assert "<img" not in page
    closed = service.store.ratings.update(row.id, closed=datetime.datetime.now(datetime.UTC))
    assert "Open the round again" in manage_box(closed, [])
    assert "closed" in rater_table([], {}, closed, "http://host")


def test_a_verdict_names_what_is_sure_only(service: Service, project: ProjectRow) -> None:
    rows = [{"source": f"s{n}", "vanilla": "a", "customized": f"b{n}", "plugin": "Lu Xun"} for n in range(12)]
    row = new_round(service.store, project.id, saved(service, project, rows), RoundPlan("Lu Xun", "vanilla", raters=["Mei"]))
    worse = {n: {"content": "lose", "fluency": "tie", "style": "win" if n < 7 else "lose"} for n in range(12)}
    result = summarize({"Mei": worse})
    assert verdict(result, row) == "<b>vanilla</b> is better in content; no significant difference in fluency and style."
    even = summarize({"Mei": {n: {"style": "tie"} for n in range(12)}})
    assert verdict(even, row) == "No significant difference in style."
    text = re.sub(r"<[^>]+>", " ", rating_result(result, row))
    assert "κ needs two raters." in text


def ablation_job(service: Service, project: ProjectRow, number: int, **more: object) -> JobRow:
    return enqueue(service.store, "ablate", {"plugin_id": number, **more}, project_id=project.id)


def test_a_memory_is_exchanged_from_the_card(service: Service, project: ProjectRow) -> None:
    row = plugin(service, project, "Golden", GOLDEN / "format-1" / "plugin.zip")
    page = shown(service, project)
    assert "Does its memory matter?" in page
    assert f'data-ablate="{row.id}"' in page
    lines = {"sources": ["The rain stopped.", "He said nothing."], "references": ["雨停了。", "他什么也不曾说。"]}
    job = ablation_job(service, project, row.id, **lines, against=["empty", "mean"])
    assert "data-ablate" not in plugin_cards(by_name([row]), {row.id: card_data(row, {}, {row.id: job})}, project)
    folder = service.workspace(project.id, change=True)
    result = KINDS["ablate"].run(JobContext(job, service.store, service.settings, folder, Progress()))
    assert [variant["memory"] for variant in result["variants"]] == ["true", "empty", "mean"]
    assert result == json.loads(json.dumps(result))
    result["variants"][2] |= {"bleu": None, "chrf": None, "nll": None, "p": None, "reason": HOSTILE}
    done = dataclasses.replace(job, state="succeeded", result=result)
    page = plugin_cards(by_name([row]), {row.id: card_data(row, {}, {row.id: done})}, project)
    assert "its own memory" in page
    assert f"{result['variants'][0]['nll']:.3f}" in page
    assert "<img" not in page
    assert "2 sentences. NLL" in page


def test_what_cannot_be_exchanged_is_refused_before_it_is_queued(service: Service, project: ProjectRow) -> None:
    row = plugin(service, project, "Golden", GOLDEN / "format-1" / "plugin.zip")
    with pytest.raises(InputError, match="1 source sentences and 2 references"):
        ablation_job(service, project, row.id, sources=["a"], references=["b", "c"])
    with pytest.raises(InputError, match="no memory 'nosie'"):
        ablation_job(service, project, row.id, against=["nosie"])
    with pytest.raises(InputError, match="needs plugin_id"):
        enqueue(service.store, "ablate", {}, project_id=project.id)
    job = ablation_job(service, project, row.id)
    folder = service.workspace(project.id, change=True)
    with pytest.raises(InputError, match="No samples of this project were held out"):
        KINDS["ablate"].run(JobContext(job, service.store, service.settings, folder, Progress()))
    assert lines_of("one\ntwo\n\n") == ["one", "two"]
