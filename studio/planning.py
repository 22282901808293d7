"""The form of the page Train: fields for the settings of a method, of training and of kNN on top, and the plan in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import TailorError
from engine.options import Options, describe
from engine.store import ProjectRow
from studio.fields import fold, settings_fields, settings_form
from studio.forms import changed, shown
from studio.html import esc
from studio.i18n import mark, tr
from studio.methods import can_look_up
from studio.runs import Plan, Runs, preset

__all__ = ["BUDGETS", "PlanForm", "plan_in_address"]

BUDGETS = [(mark("Quick"), "quick"), (mark("Balanced"), "balanced"), (mark("Best"), "best")]


KINDS = {"method": "method_options", "training": "training_options", "knn": "knn_options"}


class PlanForm:
    """The folded settings of a plan: those of its method, of training, and of kNN where it decodes on top.

    What the fields hold is JSON, `{"of": method, "values": {kind: {setting: value}}}`; an empty text, or one of another
    method, stands for the settings of the budget.
    """

    def __init__(self) -> None:
        from engine.decoding.knn.options import KnnOptions
        from engine.methods import get_method, method_names
        from engine.training import TrainingOptions

        self.names = method_names()
        self.methods = {name: get_method(name) for name in self.names}
        self.training, self.knn = TrainingOptions, KnnOptions

    def plan(self, project: ProjectRow, given: Sequence[Any]) -> Plan:
        """What the page holds: method, budget, kNN on top, base, and the text of the fields. Raises OptionError naming a
        setting that cannot be.
        """
        method, budget, knn, base, text = given
        preset_ = preset(budget, method)
        values = self.held(text, method) or self.values(Plan(method, budget, ""))
        knn = knn and can_look_up(self.methods[method])
        # The engine's budgets know nothing of watching, so it is said even where it was left as it is shown.
        known = {key: value for key, value in preset_["training"].items() if key != "watch"}
        return Plan(
            method,
            budget,
            base or project.base,
            knn,
            changed(self.methods[method].config_class, values.get("method", {}), preset_["method"]),
            changed(self.training, values.get("training", {}), known),
            changed(self.knn, values.get("knn", {})) if knn else {},
        )

    def classes(self, method: str) -> dict[str, type[Options]]:
        """{kind: the class of its settings}."""
        return {"method": self.methods[method].config_class, "training": self.training, "knn": self.knn}

    def held(self, text: str, method: str = "") -> dict[str, dict[str, Any]]:
        """What the fields hold by kind and setting; empty where they are those of another method than the one named."""
        try:
            found = json.loads(text or "{}")
            values = {str(kind): dict(some) for kind, some in found.get("values", {}).items()}
            return values if found.get("of") == method or not method else {}
        except (ValueError, TypeError, AttributeError):
            return {}

    def values(self, plan: Plan) -> dict[str, dict[str, Any]]:
        """What the fields hold for a plan: the budget's settings under the plan's own."""
        budget = preset(plan.budget, plan.method)
        found = {}
        for kind, cls in self.classes(plan.method).items():
            own = {**budget.get(kind, {}), **getattr(plan, KINDS[kind])}
            found[kind] = {item.name: shown(item, own.get(item.name, item.default)) for item in describe(cls)}
        return found

    def text(self, method: str, values: Mapping[str, Mapping[str, Any]]) -> str:
        """What the fields hold, as JSON."""
        return json.dumps({"of": method, "values": values}, ensure_ascii=False)

    def fields(self, method: str, knn: bool, values: Mapping[str, Mapping[str, Any]]) -> str:
        """The fields as HTML; those of kNN are there where it decodes on top."""
        titles = {"method": self.methods[method].capabilities.title, "training": mark("Training")}
        if knn and can_look_up(self.methods[method]):
            titles["knn"] = mark("kNN decoding on top")
        body = "".join(
            f"<h2>{esc(tr(title))}</h2>{settings_fields(self.classes(method)[kind], kind, values[kind])}"
            for kind, title in titles.items()
        )
        return settings_form(method, fold("settings", tr("Advanced settings"), body))

    def check(self, plan: Plan) -> None:
        """Raises OptionError on a setting that cannot be."""
        budget = preset(plan.budget, plan.method)
        for kind, cls in self.classes(plan.method).items():
            cls.from_mapping({**budget.get(kind, {}), **getattr(plan, KINDS[kind])})

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
