"""The page Translate without a browser: several documents at once, of which some cannot be translated."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from engine.corpora.formats.documents.model import Result
from engine.store import ProjectRow
from studio.pages.translate import TranslatePage
from studio.services.comparisons import Comparisons
from studio.services.service import Service
from studio.services.translation import wanted_plugin


@pytest.fixture
def translate(service: Service) -> TranslatePage:
    with gr.Blocks() as demo:
        page = TranslatePage(demo, service)
        page.layout()
    return page


def asked(project: ProjectRow) -> Any:
    return SimpleNamespace(query_params={"project": str(project.id)}, headers={})


def test_a_text_in_another_language_is_translated_with_a_warning(
    translate: TranslatePage, project: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "translate", lambda self, project, units, *rest: [Result(["雨停了。"], "") for _ in units])
    warnings = {
        "雨还没有停，他开了门，谁也没有说话。": "seems to be in Chinese; this project translates from English to Chinese.",
        "Der Regen hatte nicht aufgehört, und niemand sagte ein Wort.": "seems to be in German",
        "The rain had not stopped, and nobody said a word.": "",
        "OK": "",
    }
    for text, warning in warnings.items():
        *_, last = translate.short.answer(asked(project), text, 0, 1.0, False)
        assert "雨停了。" in last[translate.short.result]
        assert warning in last[translate.short.result]
        assert bool(warning) is ("seems to be in" in last[translate.short.result])


def test_a_document_in_another_language_is_queued_with_a_warning(
    translate: TranslatePage, project: ProjectRow, tmp_path: Path
) -> None:
    for name, text in {"de": "Der Regen hatte nicht aufgehört.\n", "en": "The rain had not stopped.\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text * 60, encoding="utf-8")
    request = asked(project)
    translate.queue(request, [str(tmp_path / "de.txt"), str(tmp_path / "en.txt")], 0, 1.0, False)
    warning = "This document seems to be in German; this project translates from English to Chinese."
    waiting = translate.poll(request)[translate.at_work]
    assert re.search(f"de.txt(?s:(?!en.txt).)*{warning}", waiting)
    assert waiting.count("seems to be in") == 1
    for document in translate.documents.list(project.id):
        translate.documents.cancel(document.job.id)
    assert translate.poll(request)[translate.done].count(warning) == 1


def test_documents_that_cannot_be_translated_are_listed_and_the_others_queued(
    translate: TranslatePage, project: ProjectRow, tmp_path: Path
) -> None:
    content = {"a.docx": b"no document", "b.txt": b"The rain stopped.", "c.png": b"x", "d.md": b"# Rain\n\nIt rains."}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    request, files = asked(project), [str(tmp_path / name) for name in content]
    card = str(translate.queue(request, files, 0, 1.0, False)[translate.refused.card])
    assert [document.name for document in translate.documents.list(project.id)] == ["d.md", "b.txt"]
    assert "a.docx cannot be opened" in card
    assert "c.png is in no format that can be translated here" in card
    assert str(tmp_path) not in card
    large: Any = SimpleNamespace(names=["e.docx"])
    assert "e.docx is larger than" in translate.refused.refuse(request, large)[translate.refused.card]
    translate.refused.dismiss(request, SimpleNamespace(name="c.png"))  # type: ignore[arg-type]
    drawn = str(translate.fill(request)[translate.refused.card])
    assert "a.docx" in drawn
    assert "c.png" not in drawn, "it was dismissed"


def test_the_only_plugin_is_chosen_to_begin_with_though_it_was_imported(
    translate: TranslatePage, project: ProjectRow, tmp_path: Path
) -> None:
    store, comparisons = translate.service.store, Comparisons(translate.service)
    bundle = tmp_path / "bought.zip"
    bundle.write_bytes(b"PK")

    def begins_with() -> tuple[int, list[int]]:
        menu = translate.fill(asked(project))[translate.plugin]
        return menu["value"], comparisons.chosen_plugins(project, None, None)

    assert begins_with() == (0, [])
    harm = {"bleu_vanilla": 14.8, "bleu": 14.8, "bleu_p": 0.5}
    harm |= {"general_bleu_vanilla": 20.0, "general_bleu": 18.7, "general_bleu_p": 0.03}
    harmful = store.plugins.create(project.id, "Harmful", method="lhuc", path=str(bundle), metrics=harm).id
    assert begins_with() == (0, []), "the plugin does harm"
    store.plugins.delete(harmful)
    bought = store.plugins.create(project.id, "Bought", method="lhuc", path=str(bundle), imported=True).id
    assert begins_with() == (bought, [bought])
    assert store.defaults.get(project.id) is None, "it is still no default"
    store.defaults.set(project.id, None)
    assert begins_with() == (0, []), "somebody chose the base alone"
    store.defaults.set(project.id, bought)
    assert begins_with() == (bought, [bought])


def test_of_several_imported_plugins_none_is_chosen_to_begin_with(
    translate: TranslatePage, project: ProjectRow, tmp_path: Path
) -> None:
    for name in ("Bought", "Found"):
        bundle = tmp_path / f"{name}.zip"
        bundle.write_bytes(b"PK")
        translate.service.store.plugins.create(project.id, name, method="lhuc", path=str(bundle), imported=True)
    assert wanted_plugin(translate.service, project, "") is None
    assert Comparisons(translate.service).chosen_plugins(project, None, None) == []
