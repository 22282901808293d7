"""The methods as cards: what each is for, what it costs here, what it needs and what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.store import ProjectRow
from studio.frame import device_said
from studio.html import esc, size, tag
from studio.i18n import mark, span, tr
from studio.service import Service
from studio.told import told

if TYPE_CHECKING:
    from engine.estimate import Estimate
    from engine.methods import Method

__all__ = ["FIRST", "PICK", "MethodCard", "can_look_up", "estimate_line", "lacking", "method_card", "method_cards"]

# Shown at once, in this order; the others lie folded.
FIRST = ("memory_adapter", "knn", "residual_adapter", "translation_memory", "fine_tuning")
RECOMMENDED = "memory_adapter"
# Choosing is shown at once, before the server answers; arrows move as they do among radio buttons.
PICK = """
const cards = () => [...element.querySelectorAll('[data-method]:not([disabled])')].filter((one) => one.offsetParent);
const choose = (card) => {
  for (const one of element.querySelectorAll('[data-method]')) {
    one.setAttribute('aria-checked', one === card ? 'true' : 'false');
    one.tabIndex = one === card ? 0 : -1;
  }
  card.focus();
  trigger('choose', {name: card.dataset.method});
};
element.addEventListener('click', (event) => {
  const card = event.target.closest('[data-method]');
  if (card && !card.disabled) choose(card);
});
element.addEventListener('keydown', (event) => {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  const card = event.target.closest('[data-method]');
  if (!step || !card) return;
  event.preventDefault();
  const all = cards();
  choose(all[(all.indexOf(card) + step + all.length) % all.length]);
});
"""


@dataclass(frozen=True)
class MethodCard:
    """What the registry says of a method, what it costs here, and what it lacks (empty when it can run)."""

    name: str
    title: str
    summary: str
    facts: str
    lacks: str = ""
    remedy: str = ""
    cost: str = ""
    mark: str = ""


def lacking(service: Service, project: ProjectRow | None, method: Method) -> tuple[str, str]:
    """What a method lacks in this project, and what to do about it; both empty when it can run."""
    about = method.capabilities
    report = service.report(project.id) if project else {}
    domains = len(report.get("domains") or {}) or 1
    if about.needs_bilingual and not report.get("source_language"):
        return tr("needs translations"), tr("Add samples that have their sources.")
    if about.needs_domains > domains:
        return tr("needs {count} domains", count=about.needs_domains), tr("Add a file of another domain.")
    if method.name == "domain_mixing" and project and domains < 2 and not _general(service, project):
        return tr("needs {count} domains", count=2), tr("Add a file of another domain, or of plain everyday text.")
    if about.needs_endpoint and not service.settings.endpoints:
        return tr("needs a service"), tr("Name its address in the setting “endpoints”, then start the studio again.")
    if method.name == "knn" and not _has_faiss():
        return tr("needs faiss"), tr("Install it: pip install 'tailor-mt[cpu]'.")
    return "", ""


def _general(service: Service, project: ProjectRow) -> bool:
    from engine.languages import bare

    code = bare(project.target)
    return (service.settings.assets_dir / "samples" / f"general-{code}" / f"general-{code}.txt").is_file()


def _has_faiss() -> bool:
    from importlib.util import find_spec

    return find_spec("faiss") is not None


def can_look_up(method: Method) -> bool:
    """Whether kNN decoding can work on top of a method: it needs probabilities, and not a datastore already."""
    about = method.capabilities
    return about.offers_likelihood and method.name != "knn" and not about.needs_endpoint and _has_faiss()


def method_card(
    service: Service, project: ProjectRow | None, method: Method, estimate: Estimate | None = None
) -> MethodCard:
    """The card of a method for a project."""
    about = method.capabilities
    lacks, remedy = lacking(service, project, method)
    domains = len((service.report(project.id) if project else {}).get("domains") or {})
    facts = [
        tr("needs phrases") if about.needs_phrases else "",
        tr("takes general text as second domain")
        if method.name == "domain_mixing" and not lacks and domains < 2
        else "",
        "" if about.offers_strength else tr("no strength dial"),
    ]
    fact = mark("recommended") if method.name == RECOMMENDED else "" if about.trains else mark("trains nothing")
    cost = ""
    if estimate is not None and not lacks:
        cost = f"≈ {span(estimate.seconds)} · {size(estimate.bundle)}"
        if about.needs_endpoint:
            cost = tr("your service's price")
    return MethodCard(
        method.name,
        tr(about.title),
        tr(about.summary),
        " · ".join(fact for fact in facts if fact),
        lacks,
        remedy,
        cost,
        fact,
    )


def method_cards(cards: Sequence[MethodCard], chosen: str) -> str:
    """The methods as cards, the chosen one framed; those that lack something say what. Most lie folded."""
    order = {name: place for place, name in enumerate(FIRST)}
    first = sorted((one for one in cards if one.name in order), key=lambda one: order[one.name])
    rest = [one for one in cards if one.name not in order]
    if not first:
        first, rest = list(cards), []
    shown = "".join(_card(one, chosen) for one in first)
    if rest:
        opened = " open" if chosen in {one.name for one in rest} else ""
        more = "".join(_card(one, chosen) for one in rest)
        shown += (
            f'<details class="tm-more-methods"{opened}><summary>{esc(tr("{count} more methods", count=len(rest)))}</summary>'
            f'<div class="tm-methods">{more}</div></details>'
        )
    return f'<div class="tm-methods tm-method-row" role="radiogroup" aria-label="{esc(tr("Method"))}">{shown}</div>'


def _card(one: MethodCard, chosen: str) -> str:
    picked = one.name == chosen
    marks = (
        tag(one.lacks)
        if one.lacks
        else tag(tr(one.mark), "accent" if one.mark == "recommended" else "")
        if one.mark
        else ""
    )
    below = f'<p class="tm-cost">{esc(one.remedy or one.cost)}</p>' if one.remedy or one.cost else ""
    facts = f'<p class="tm-small">{esc(one.facts)}</p>' if one.facts and not one.lacks else ""
    return (
        f'<button type="button" role="radio" class="tm-method" data-method="{esc(one.name)}" '
        f'aria-checked="{"true" if picked else "false"}" tabindex="{0 if picked else -1}"{" disabled" if one.lacks else ""}>'
        f"<h3 aria-level=2>{esc(one.title)} {marks}</h3><p>{esc(one.summary)}</p>{facts}{below}</button>"
    )


def estimate_line(estimate: Estimate, machine: Mapping[str, Any]) -> str:
    """What a start would take: time, memory, disk, device; and how sure that is.

    `machine`: `memory` and `free_memory`, `free_disk` in bytes. What would not fit is said in so many words.
    """
    total = machine["memory"]
    parts = [
        f"<b>{esc(span(estimate.seconds))}</b>",
        tr("memory {used} of {all}", used=f"<b>{estimate.memory / 2**30:.1f}</b>", all=f"{total / 2**30:.0f} GiB"),
        tr("disk {size}", size=f"<b>{esc(size(estimate.disk))}</b>"),
        esc(device_said(estimate.device)),
    ]
    sure = tr(estimate.sentence)
    between = tr("{low} to {high}, {sure}.", low=span(estimate.low), high=span(estimate.high), sure=sure)
    notes = "".join(f" {esc(told(one))}" for one in estimate.notes)
    steps = ", ".join(f"{tr(name)} {span(seconds)}" for name, seconds in estimate.parts.items())
    warnings = ""
    if estimate.memory > machine["free_memory"]:
        free = f"{machine['free_memory'] / 2**30:.1f} GiB"
        lower = tr("Only {size} of memory are free now. Lower tokens_per_batch, or close something.", size=free)
        warnings += f'<p class="tm-warn">{esc(lower)}</p>'
    if estimate.disk + estimate.bundle > machine["free_disk"]:
        room = tr("Only {size} of the disk are free. Make room first.", size=size(machine["free_disk"]))
        warnings += f'<p class="tm-warn">{esc(room)}</p>'
    return (
        f'<div class="tm-before"><p title="{esc(steps)}">{esc(tr("Before you start:"))} {" · ".join(parts)}</p>'
        f'<p class="tm-small">{esc(between)}{notes}</p>{warnings}</div>'
    )
