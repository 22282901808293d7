"""The form of the page Train: widgets for the settings of every method, of training and of kNN on top, and the plan in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from engine.errors import TailorError
from engine.store import ProjectRow
from studio.forms import Form, build_form
from studio.html import esc, view
from studio.i18n import mark, tr
from studio.methods import can_look_up
from studio.runs import Plan, Runs, preset

__all__ = ["BUDGETS", "PlanForm", "plan_in_address"]

BUDGETS = [(mark("Quick"), "quick"), (mark("Balanced"), "balanced"), (mark("Best"), "best")]


class PlanForm:
    """The folded settings. `widgets` are all of them; only those of the chosen method are seen."""

    def __init__(self) -> None:
        from engine.decoding.knn.options import KnnOptions
        from engine.methods import get_method, method_names
        from engine.training import TrainingOptions

        self.names = method_names()
        self.methods = {name: get_method(name) for name in self.names}
        self.own: dict[str, Form] = {}
        self.groups: list[Any] = []
        for name, one in self.methods.items():
            with gr.Column(visible=name == self.names[0]) as group:
                view(f"<h2>{esc(one.capabilities.title)}</h2>", classes="tm-card-title")
                self.own[name] = build_form(one.config_class, preset("balanced", name)["method"])
            self.groups.append(group)
        view("<h2>Training</h2>", classes="tm-card-title")
        self.training = build_form(TrainingOptions, preset("balanced", self.names[0])["training"])
        with gr.Column(visible=False) as self.looking:
            view("<h2>kNN decoding on top</h2>", classes="tm-card-title")
            self.knn = build_form(KnnOptions)
        self.widgets = [widget for form in (*self.own.values(), self.training, self.knn) for widget in form.widgets]

    def plan(self, project: ProjectRow, given: Sequence[Any]) -> Plan:
        """What the page holds: method, budget, kNN on top, base, and the values of the widgets. Raises OptionError naming a
        setting that cannot be.
        """
        method, budget, knn, base, *values = given
        shown, at, parts = preset(budget, method), 0, {}
        for name, form in (*self.own.items(), ("training", self.training), ("+knn", self.knn)):
            parts[name] = values[at : at + len(form.widgets)]
            at += len(form.widgets)
        knn = knn and can_look_up(self.methods[method])
        # The engine's budgets know nothing of watching, so it is said even where it was left as it is shown.
        known = {key: value for key, value in shown["training"].items() if key != "watch"}
        return Plan(
            method,
            budget,
            base or project.base,
            knn,
            self.own[method].changed(parts[method], shown["method"]),
            self.training.changed(parts["training"], known),
            self.knn.changed(parts["+knn"]) if knn else {},
        )

    def check(self, plan: Plan) -> None:
        """Raises OptionError on a setting that cannot be."""
        from engine.decoding.knn.options import KnnOptions
        from engine.training import TrainingOptions

        shown = preset(plan.budget, plan.method)
        self.methods[plan.method].config_class.from_mapping({**shown["method"], **plan.method_options})
        TrainingOptions.from_mapping({**shown["training"], **plan.training_options})
        KnnOptions.from_mapping(plan.knn_options)

    def shown(self, plan: Plan, *, knn: bool = True) -> dict[Any, Any]:
        """{widget: its value} for a plan: the budget's settings under the plan's own; without `knn`, not those on top."""
        values: list[Any] = []
        for name, form in self.own.items():
            own = plan.method_options if name == plan.method else {}
            values += form.values({**preset(plan.budget, name)["method"], **own})
        values += self.training.values({**preset(plan.budget, plan.method)["training"], **plan.training_options})
        if knn:
            values += self.knn.values(plan.knn_options)
        return dict(zip(self.widgets, values, strict=False))

    def visible(self, plan: Plan) -> dict[Any, Any]:
        """{group: whether it is seen}."""
        found = {
            group: gr.update(visible=name == plan.method) for name, group in zip(self.names, self.groups, strict=True)
        }
        return {**found, self.looking: gr.update(visible=plan.knn and can_look_up(self.methods[plan.method]))}

    @property
    def settled(self) -> list[Any]:
        """The events by which a setting was changed by hand, and not in the middle of typing."""
        return [one.blur if isinstance(one, gr.Number | gr.Textbox) else one.input for one in self.widgets]

    def address(self, plan: Plan, project: ProjectRow) -> dict[str, str]:
        """The parts of the address that show the plan again; empty ones are taken out of it."""
        settings = plan.settings()
        if settings.get("training_options") == {"watch": preset(plan.budget, plan.method)["training"]["watch"]}:
            del settings["training_options"]
        return {
            "method": plan.method,
            "budget": plan.budget,
            "knn": "yes" if plan.knn else "",
            "base": plan.base if plan.base != project.base else "",
            "set": json.dumps(settings, ensure_ascii=False) if settings else "",
            "clone": "",
        }


def plan_in_address(
    runs: Runs, form: PlanForm, project: ProjectRow | None, asked: Mapping[str, Any]
) -> tuple[Plan, str]:
    """The plan that an address names, and a word for the user where there is something to say about it."""
    first = Plan(form.names[0], "balanced", project.base if project else "")
    if project is None:
        return first, ""
    says = ""
    try:
        if number := str(asked.get("clone", "")):
            plan = runs.plan_of(project, number)
            says = tr("The settings of an earlier run. Change what you like, then start.")
        else:
            plan = _named(runs, form, project, asked, first)
        if plan.method not in form.methods:
            return first, tr("The method {name} is no longer there.", name=plan.method)
        form.check(plan)
    except TailorError as error:
        return first, tr(str(error))
    return plan, says


def _named(runs: Runs, form: PlanForm, project: ProjectRow, asked: Mapping[str, Any], first: Plan) -> Plan:
    method, budget, base = (str(asked.get(name, "")) for name in ("method", "budget", "base"))
    try:
        known = {name: dict(value) for name, value in json.loads(str(asked.get("set", "")) or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        known = {}
    return Plan(
        method if method in form.methods else first.method,
        budget if budget in [key for _, key in BUDGETS] else first.budget,
        base if base in [path for _, path in runs.bases(project)] else project.base,
        asked.get("knn") == "yes",
        known.get("method_options", {}),
        known.get("training_options", {}),
        known.get("knn_options", {}),
    )
