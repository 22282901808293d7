"""The methods as cards: purpose, estimated cost, requirements, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.core.languages import primary_language
from engine.memory.faiss_search import has_faiss
from engine.messages import Message
from engine.methods import Method, get_method, method_names
from engine.store import ProjectRow
from engine.workflows.customize.request import AUTO
from engine.workflows.estimate import Estimate
from studio.components.html import size
from studio.components.layout import address, device_text
from studio.components.templating import render, script
from studio.i18n.translate import mark, span, together, tr, translate_message
from studio.services.service import Service

# Shown first, in this order; the other methods are folded.
FIRST = (AUTO, "memory_adapter", "knn", "residual_adapter", "fine_tuning")
PICK = script("method-cards.js")
# Replaces the first input of an event by the currently selected method, even if the server has not yet answered that choice.
CHOSEN = script("method-chosen.js")


@dataclass(frozen=True)
class MethodCard:
    """A method's description from the registry, its estimated cost, and what it lacks (empty if it can run)."""

    name: str
    title: str
    summary: str
    facts: str
    lacks: str = ""
    remedy: str = ""
    cost: str = ""
    mark: str = ""


def lacking(service: Service, project: ProjectRow | None, method: Method) -> tuple[str, str]:
    """What a method lacks in this project, and the remedy, for `translate_message`; both empty if it can run."""
    capabilities = method.capabilities
    report = service.report(project.id) if project else {}
    domains = len(report.get("domains") or {}) or 1
    sentences, _, sourced, _ = service.counted(project.id) if project else (0, 0, 0, 1)
    if capabilities.needs_bilingual and sourced < max(1, sentences):
        return mark("needs translations"), mark("Add samples with their sources.")
    if capabilities.needs_domains > domains:
        needed = Message(mark("needs {count} domains"), count=capabilities.needs_domains)
        return needed, mark("Add a file of another domain.")
    if method.name == "domain_mixing" and project and domains < 2 and not _general(service, project):
        needed = Message(mark("needs {count} domains"), count=2)
        return needed, mark("Add a file of another domain, or of plain everyday text.")
    if capabilities.needs_endpoint and not service.settings.endpoints:
        return mark("needs a service"), mark("Enter its address in the setting “endpoints”, then restart the studio.")
    if method.name == "knn" and not has_faiss():
        return mark("needs faiss"), mark("Install it: pip install 'tailor-mt[cpu]'.")
    return "", ""


def obstacle(service: Service, project: ProjectRow, name: str, remedy: str = "") -> Message:
    """A sentence on what a method lacks here, with `remedy` or the usual remedy; empty if it can run."""
    if name == AUTO:
        return Message("")
    method = get_method(name)
    lacks, usual = lacking(service, project, method)
    if not lacks:
        return Message("")
    return Message(
        mark("{method} {lack} here. {remedy}"),
        method=Message(method.capabilities.title), lack=Message(lacks), remedy=Message(remedy or usual),
    )  # fmt: skip


def _general(service: Service, project: ProjectRow) -> bool:
    code = primary_language(project.target)
    return (service.settings.assets_dir / "samples" / f"general-{code}" / f"general-{code}.txt").is_file()


def can_look_up(method: Method) -> bool:
    """Whether kNN decoding can run on top of a method: it must yield probabilities and not use a datastore already."""
    capabilities = method.capabilities
    return capabilities.offers_likelihood and method.name != "knn" and not capabilities.needs_endpoint and has_faiss()


def method_card(service: Service, project: ProjectRow | None, method: Method, estimate: Estimate | None = None) -> MethodCard:
    """The card of a method for a project."""
    capabilities = method.capabilities
    lacks, remedy = lacking(service, project, method)
    domains = len((service.report(project.id) if project else {}).get("domains") or {})
    facts = [
        tr("needs phrases") if capabilities.needs_phrases else "",
        tr("uses general text as the second domain") if method.name == "domain_mixing" and not lacks and domains < 2 else "",
        "" if capabilities.offers_strength else tr("strength not adjustable"),
    ]
    cost = ""
    if estimate is not None and not lacks:
        cost = cost_of(estimate)
        if capabilities.needs_endpoint:
            cost = tr("priced by your service")
    return MethodCard(
        method.name,
        tr(capabilities.title),
        tr(capabilities.summary),
        " · ".join(fact for fact in facts if fact),
        translate_message(lacks),
        translate_message(remedy),
        cost,
        "" if capabilities.trains else mark("no training"),
    )


def cost_of(estimate: Estimate) -> str:
    return f"≈ {span(estimate.seconds)} · {size(estimate.bundle)}"


def automatic_card(estimate: Estimate | None = None) -> MethodCard:
    """The card for the automatic choice of the method."""
    return MethodCard(
        AUTO,
        tr("Automatic"),
        tr("Tries several methods, alone and combined, and keeps the one that translates held-out samples best."),
        "",
        cost=cost_of(estimate) if estimate is not None else "",
        mark=mark("recommended"),
    )


def method_cards(cards: Sequence[MethodCard], chosen: str) -> str:
    """The methods as cards, the chosen one highlighted; most are folded."""
    order = {name: rank for rank, name in enumerate(FIRST)}
    first = sorted((card for card in cards if card.name in order), key=lambda card: order[card.name])
    folded = [card for card in cards if card.name not in order] if first else []
    return render("method_cards.html", first=first or cards, rest=folded, chosen=chosen)


def project_cards(service: Service, project: ProjectRow | None, estimates: Mapping[str, Estimate], chosen: str) -> str:
    """All methods as cards for a project; `estimates`: by method, including `auto`."""
    cards = [method_card(service, project, get_method(name), estimates.get(name)) for name in method_names()]
    return method_cards([automatic_card(estimates.get(AUTO)), *cards], chosen)


def estimate_line(estimate: Estimate | None, machine: Mapping[str, Any], project: int = 0) -> str:
    """The estimated time, memory, disk space and device of a run, with its uncertainty; `estimate` is None without samples.

    `machine`: `memory`, `free_memory` and `free_disk` in bytes; the line warns if they do not suffice.
    """
    if estimate is None:
        return render("estimate.html", estimate=None, samples=address("samples", project))
    low, high = span(estimate.low), span(estimate.high)
    return render(
        "estimate.html",
        estimate=estimate,
        time=span(estimate.seconds),
        gib=lambda bytes_, digits=1: f"{bytes_ / 2**30:.{digits}f}",
        machine=machine,
        device=device_text(estimate.device),
        steps=", ".join(f"{tr(name)} {span(seconds)}" for name, seconds in estimate.parts.items()),
        sure=together(
            tr("{low} to {high}, {sure}.", low=low, high=high, sure=tr(estimate.sentence)), *map(translate_message, estimate.notes)
        ),
    )
