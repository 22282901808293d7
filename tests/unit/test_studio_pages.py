"""What single pages show, and the form that is made of any settings class."""

from __future__ import annotations

import re

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OptionError
from engine.methods import get_method, method_names
from engine.options import Options
from engine.training import BUDGETS, TrainingOptions, budget_options
from studio.figures import figure_row, scores
from studio.forms import build_form, label
from studio.frame import PAGES
from studio.phrases import Filter, Row, phrase_table, select
from studio.report import file_table, length_bars, report_cards
from studio.train import MethodCard, method_cards

ROWS = [
    Row("雨", 1, 96, "NN", 0, "rain"),
    Row("不曾停歇", 2, 6, "VP", 1, "had not stopped"),
    Row("雨还在下", 3, 2, "IP", 2, ""),
]
CLASSES: list[tuple[str, type[Options]]] = [(name, get_method(name).config_class) for name in method_names()]
CLASSES.append(("", TrainingOptions))


def test_select_filters_and_orders() -> None:
    def texts(*values: object) -> list[str]:
        return [row.text for row in select(ROWS, Filter.of(*values))]

    assert texts("", None, None, None, "most frequent") == ["雨", "不曾停歇", "雨还在下"]
    assert texts("", None, None, -1, "longest") == ["雨还在下", "不曾停歇", "雨"]
    assert texts("雨", 2, 10, -1, "most frequent") == ["雨还在下"]
    assert texts("STOPPED", 1, 10, -1, "most frequent") == ["不曾停歇"]
    assert texts("", 1, 10, 0, "shortest") == ["雨"]
    assert texts("xyz", 1, 10, -1, "shortest") == []


def test_phrase_table_shows_back_translations_only_where_there_are_some() -> None:
    assert "back-translation" in phrase_table(ROWS, "zh", "en")
    assert "back-translation" not in phrase_table(ROWS[2:], "zh", "en")


def test_skipped_lines_are_shown_with_line_reason_and_text() -> None:
    report = {
        "language": "zh",
        "files": [
            {
                "name": "a.txt",
                "encoding": "gb18030",
                "lines": 1200,
                "kept": 1190,
                "skipped": {"too short": 7, "duplicate": 3},
                "examples": {"too short": [[12, "嗯 <b>"]]},
                "notes": ["Read as GB18030."],
            }
        ],
        "languages": {"zh": 0.97, "ja": 0.03, "en": 0.001},
        "warnings": ["3 % of the sentences look Japanese."],
    }
    shown = file_table(report)
    assert "Skipped <b>10</b>: too short 7, duplicate 3" in shown
    assert ">12<" in shown
    assert "嗯 &lt;b&gt;" in shown
    assert "1,190" in shown
    page = report_cards(report, [{"text": "雨还在下。", "file": "a.txt", "line": 3}], "zh")
    assert "Chinese 97%" in page
    assert "Japanese 3%" in page
    assert "English" not in page
    assert "look Japanese" in page
    assert "雨还在下。" in page
    assert report_cards({}, [], "zh") == ""


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60))
def test_every_sentence_stands_in_one_column_of_the_length_chart(lengths: list[int]) -> None:
    shown = length_bars(["x" * length for length in lengths])
    counts = [int(count.replace(",", "")) for count in re.findall(r": ([\d,]+) sentences</title>", shown)]
    assert sum(counts) == len(lengths)
    assert 1 <= len(counts) <= 12


def test_ten_examples_stay_the_same_between_two_looks() -> None:
    report = {"files": [], "language": "zh"}
    sentences = [{"text": f"第{place}句", "line": place} for place in range(500)]
    assert report_cards(report, sentences, "zh") == report_cards(report, sentences, "zh")
    assert report_cards(report, sentences, "zh").count("<tr>") == 12


@pytest.mark.parametrize(("method", "cls"), CLASSES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("budget", list(BUDGETS))
def test_a_form_left_alone_changes_nothing(method: str, cls: type[Options], budget: str) -> None:
    preset = budget_options(budget, method or "memory_adapter")["method" if method else "training"]
    with gr.Blocks():
        form = build_form(cls)
    assert len(form.widgets) == len(cls().to_mapping())
    assert form.changed(form.values(preset), preset) == {}
    assert form.changed([widget.value for widget in form.widgets]) == {}


def test_a_form_gives_back_what_was_changed_and_names_a_bad_value() -> None:
    with gr.Blocks():
        form = build_form(TrainingOptions)
    values = form.values({})
    place = [item.name for item in form.items].index("max_updates")
    values[place] = 77
    assert form.changed(values) == {"max_updates": 77}
    values[place] = -5
    with pytest.raises(OptionError, match="max_updates: -5 is below"):
        form.changed(values)


def test_figures_of_a_real_evaluation() -> None:
    from engine.evaluation import evaluate

    references = [
        "the rain had not stopped at all",
        "he opened the old wooden door",
        "nobody said a word that night",
    ] * 5
    systems = {"vanilla": [line.replace("the", "a") for line in references], "customized": references}
    style = evaluate(systems, references, language="en", baseline="vanilla", samples=100).to_mapping()
    found = {one.title: one for one in scores({"style": style, "general": style, "seconds": 3.2})}
    assert list(found) == ["BLEU, style", "chrF, style", "BLEU, general", "chrF, general"]
    assert found["BLEU, style"].after == pytest.approx(100)
    assert found["BLEU, style"].before < 90
    assert re.fullmatch(r"\+\d+\.\d · 95 % 100\.0–100\.0 · p [<=] 0\.\d+", found["BLEU, style"].sure)
    assert figure_row({"style": style}).count('tm-figure"') == 2
    assert figure_row({}) == figure_row({"loss": 3.1, "systems": "x"}) == ""
    assert [one.title for one in scores(style)] == ["BLEU", "chrF"]


def test_labels_are_words() -> None:
    assert label("learning_rate") == "Learning rate"


def test_a_method_that_lacks_something_says_what_and_cannot_be_chosen() -> None:
    cards = [
        MethodCard("a", "Memory adapter", "Reads phrases.", "", ""),
        MethodCard("b", "Domain mixing", "Experts.", "", "needs 2 domains"),
    ]
    shown = method_cards(cards, "a")
    assert 'data-method="a" aria-checked="true">' in shown
    assert 'data-method="b" aria-checked="false" disabled>' in shown
    assert "needs 2 domains" in shown


def test_pages_have_their_places() -> None:
    assert list(PAGES) == ["samples", "phrases", "train", "compare", "plugins"]
