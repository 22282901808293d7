"""What single pages show, and the form that is made of any settings class."""

from __future__ import annotations

import dataclasses
import datetime
import re

import pytest

from engine.core.options import Options, describe
from engine.errors import OptionError
from engine.methods import get_method, method_names
from engine.store import PluginRow
from engine.training import BUDGETS, TrainingOptions, budget_options
from studio.components.layout import PAGES
from studio.components.metric_cards import figure_row
from studio.components.settings_fields import SettingsGroup, changed, field_value, settings_fields
from studio.i18n.labels import label
from studio.services.scores import harm, scores

CLASSES: list[tuple[str, type[Options]]] = [(name, get_method(name).config_class) for name in method_names()]
CLASSES.append(("", TrainingOptions))


@pytest.mark.parametrize(("method", "cls"), CLASSES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("budget", list(BUDGETS))
def test_fields_left_alone_change_nothing(method: str, cls: type[Options], budget: str) -> None:
    preset = budget_options(budget, method or "memory_adapter")["method" if method else "training"]
    values = {item.name: field_value(item, preset.get(item.name, item.default)) for item in describe(cls)}
    page = settings_fields(method, [SettingsGroup("some", cls, values)])
    assert page.count("data-kind=") == len(cls().to_mapping())
    assert changed(cls, values, preset) == {}


def test_fields_give_back_what_was_changed_and_name_a_bad_value() -> None:
    values = {item.name: field_value(item, item.default) for item in describe(TrainingOptions)}
    assert changed(TrainingOptions, values | {"max_updates": "77"}) == {"max_updates": 77}
    with pytest.raises(OptionError, match="max_updates: -5 is below"):
        changed(TrainingOptions, values | {"max_updates": "-5"})


def test_figures_of_a_real_evaluation() -> None:
    from engine.evaluation import evaluate

    references = ["the rain had not stopped at all", "he opened the old wooden door", "nobody said a word that night"] * 5
    systems = {"vanilla": [line.replace("the", "a") for line in references], "customized": references}
    style = evaluate(systems, references, language="en", baseline="vanilla", samples=100).to_mapping()
    result = {score.title: score for score in scores({"style": style, "general": style, "seconds": 3.2})}
    assert list(result) == ["BLEU, style", "chrF, style", "BLEU, general", "chrF, general"]
    assert result["BLEU, style"].after == pytest.approx(100)
    assert result["BLEU, style"].before < 90
    assert re.fullmatch(r"95\s%\s100\.0–100\.0 · \+\d+\.\d · p\s[<=]\s0\.\d+", result["BLEU, style"].sure)
    assert figure_row({"style": style}).count('tm-figure"') == 2
    assert figure_row({}) == figure_row({"loss": 3.1, "systems": "x"}) == ""
    assert [score.title for score in scores(style)] == ["BLEU", "chrF"]


def test_harm_is_named_where_it_is_sure_and_the_gain_is_not() -> None:
    metrics = {
        "bleu_vanilla": 14.8, "bleu": 15.0, "bleu_p": 0.299,
        "general_bleu_vanilla": 20.0, "general_bleu": 18.7, "general_bleu_p": 0.03,
    }  # fmt: skip
    plugin = PluginRow(1, 1, None, "x", "lhuc", "x.zip", "", metrics, datetime.datetime.now(datetime.UTC))

    def says(**changes: float) -> str:
        return harm(dataclasses.replace(plugin, metrics=metrics | changes))

    assert "not significantly better than the base, and general text loses 1.3 BLEU." in says()
    assert says(bleu=14.0, bleu_p=0.01) == says(), "surely worse is not better"
    assert says(bleu_p=0.04) == ""
    assert says(general_bleu_p=0.06) == ""
    assert says(general_bleu=21.0) == ""
    unsure = {key: value for key, value in metrics.items() if not key.endswith("_p")}
    assert harm(dataclasses.replace(plugin, metrics=unsure)) == ""
    assert harm(dataclasses.replace(plugin, metrics={})) == ""


def test_labels_are_words() -> None:
    assert label("learning_rate") == "Learning rate"
    names = {method: label("order", get_method(method).config_class) for method in ("density_ratio", "memory_adapter")}
    assert names == {"density_ratio": "N-gram order", "memory_adapter": "Order"}


def test_pages_have_their_places() -> None:
    order = ["samples", "phrases", "proportions", "train", "compare", "rate", "plugins", "translate"]
    assert list(PAGES) == [name for name in order if name in PAGES]
