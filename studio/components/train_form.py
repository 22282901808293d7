"""The form of the page Train: setting fields for the method, training and additional kNN, and the request they describe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.core.options import Options, describe
from engine.errors import TailorError
from engine.methods import get_method, method_names
from engine.methods.knn.options import KnnOptions
from engine.store import ProjectRow
from engine.training import TrainingOptions
from engine.workflows.customize.request import AUTO, CustomizeRequest
from studio.components.method_cards import can_look_up, obstacle
from studio.components.settings_fields import SettingsGroup, changed, collected, field_value, settings_fields
from studio.i18n.translate import mark, tr, translate_message
from studio.services.runs import Runs, own_settings, preset

BUDGETS = [(mark("Quick"), "quick"), (mark("Balanced"), "balanced"), (mark("Best"), "best")]


KINDS = {"method": "method_options", "training": "training_options", "knn": "knn_options"}


class PlanForm:
    """The advanced settings of a plan: for its method, for training, and for kNN decoding on top if selected.

    The fields' content is JSON, `{"of": "method budget", "values": {kind: {setting: value}}}`. An empty text, or one for
    another method or budget, stands for the budget's settings.
    """

    def __init__(self) -> None:
        self.methods = {name: get_method(name) for name in method_names()}
        self.names = (AUTO, *self.methods)
        self.training, self.knn = TrainingOptions, KnnOptions

    def plan(self, project: ProjectRow, controls: Sequence[Any]) -> CustomizeRequest:
        """The request from the page's controls: method, budget, kNN on top, base, and the text of the fields. Raises OptionError
        naming an invalid setting.
        """
        method, budget, knn, base, text = controls
        preset_ = preset(budget, method)
        values = self.entered(text, method, budget) or self.values(CustomizeRequest(method=method, budget=budget))
        knn = knn and self.can_look_up(method)
        # The engine's budgets do not include `watch`, so it is always sent.
        training_preset = {key: value for key, value in preset_["training"].items() if key != "watch"}
        return CustomizeRequest(
            method=method,
            budget=budget,
            base=base or project.base,
            knn=knn,
            method_options=changed(self.methods[method].config_class, values.get("method", {}), preset_["method"])
            if method != AUTO
            else {},
            training_options=changed(self.training, values.get("training", {}), training_preset),
            knn_options=changed(self.knn, values.get("knn", {})) if knn else {},
        )

    def classes(self, method: str) -> dict[str, type[Options]]:
        """{kind: class of its settings}."""
        method_class = {"method": self.methods[method].config_class} if method != AUTO else {}
        return {**method_class, "training": self.training, "knn": self.knn}

    def can_look_up(self, method: str) -> bool:
        """Whether kNN decoding can be requested on top of a method; `auto` tries it automatically."""
        return method != AUTO and can_look_up(self.methods[method])

    def values(self, plan: CustomizeRequest) -> dict[str, dict[str, object]]:
        """The field values for a plan: the budget's settings overridden by the plan's."""
        budget = preset(plan.budget, plan.method)
        values = {}
        for kind, cls in self.classes(plan.method).items():
            settings = {**budget.get(kind, {}), **getattr(plan, KINDS[kind])}
            values[kind] = {item.name: field_value(item, settings.get(item.name, item.default)) for item in describe(cls)}
        return values

    def entered(self, text: str, method: str, budget: str) -> dict[str, dict[str, object]]:
        """The field values in `text`; empty if they belong to another method or budget."""
        return collected(text, _owner(method, budget))

    def text(self, method: str, budget: str, values: Mapping[str, Mapping[str, Any]]) -> str:
        """The field values as JSON."""
        return json.dumps({"of": _owner(method, budget), "values": values}, ensure_ascii=False)

    def fields(self, method: str, budget: str, knn: bool, values: Mapping[str, Mapping[str, Any]]) -> str:
        """The fields as HTML, including those of kNN if it is used on top."""
        titles = {"method": self.methods[method].capabilities.title} if method != AUTO else {}
        titles["training"] = mark("Training")
        if knn and self.can_look_up(method):
            titles["knn"] = mark("kNN decoding on top")
        classes = self.classes(method)
        groups = [SettingsGroup(kind, classes[kind], values[kind], tr(title)) for kind, title in titles.items()]
        return settings_fields(_owner(method, budget), groups, tr("Advanced settings"))

    def check(self, plan: CustomizeRequest) -> None:
        """Raises OptionError on an invalid setting."""
        budget = preset(plan.budget, plan.method)
        for kind, cls in self.classes(plan.method).items():
            cls.from_mapping({**budget.get(kind, {}), **getattr(plan, KINDS[kind])})

    def address(self, plan: CustomizeRequest, project: ProjectRow) -> dict[str, str]:
        """The address parameters that restore the plan; empty ones are removed from the address."""
        settings = own_settings(plan)
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


def _owner(method: str, budget: str) -> str:
    """The owner of the field values (method and budget), as named in the fields' JSON and HTML."""
    return f"{method} {budget}"


def plan_in_address(
    runs: Runs, form: PlanForm, project: ProjectRow | None, query: Mapping[str, Any]
) -> tuple[CustomizeRequest, str]:
    """The plan given in an address, and a message for the user, if any."""
    first = CustomizeRequest(base=project.base if project else "")
    if project is None:
        return first, ""
    says = ""
    try:
        if number := str(query.get("clone", "")):
            plan = runs.request_of(project, number)
            says = tr("The settings of an earlier run. Change what you like, then start.")
        else:
            plan = _named(runs, form, project, query, first)
        if plan.method not in form.names:
            return first, tr("The method {name} no longer exists.", name=plan.method)
        form.check(plan)
    except TailorError as error:
        return first, translate_message(error.message)
    return plan, says or translate_message(obstacle(runs.service, project, plan.method))


def _named(runs: Runs, form: PlanForm, project: ProjectRow, query: Mapping[str, Any], first: CustomizeRequest) -> CustomizeRequest:
    method, budget, base = (str(query.get(name, "")) for name in ("method", "budget", "base"))
    try:
        options = {name: dict(value) for name, value in json.loads(str(query.get("set", "")) or "{}").items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        options = {}
    return CustomizeRequest(
        method=method if method in form.names else first.method,
        budget=budget if budget in [key for _, key in BUDGETS] else first.budget,
        base=base if base in [path for _, path in runs.bases(project)] else project.base,
        knn=query.get("knn") == "yes",
        method_options=options.get("method_options", {}),
        training_options=options.get("training_options", {}),
        knn_options=options.get("knn_options", {}),
    )
