"""What single pages show, and the form that is made of any settings class."""

from __future__ import annotations

import re

import gradio as gr
import pytest

from engine.errors import OptionError
from engine.methods import get_method, method_names
from engine.options import Options
from engine.training import BUDGETS, TrainingOptions, budget_options
from studio.figures import figure_row, scores
from studio.forms import build_form, label
from studio.frame import PAGES

CLASSES: list[tuple[str, type[Options]]] = [(name, get_method(name).config_class) for name in method_names()]
CLASSES.append(("", TrainingOptions))


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


def test_pages_have_their_places() -> None:
    order = ["samples", "phrases", "proportions", "train", "compare", "rate", "plugins", "translate"]
    assert list(PAGES) == [name for name in order if name in PAGES]
