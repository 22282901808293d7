"""What an import found, for the page Samples: files, what was skipped, what is worth a look, domains, lengths, test files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from engine.corpora.notice import NEAR_DUPLICATE
from engine.corpora.report import EXCLUDED
from studio.catalog import language_name
from studio.html import Cell, bars, card, esc, note, number, table, tag, titled
from studio.i18n import listed, mark, tr, trn
from studio.theme import DOMAINS
from studio.told import told

__all__ = ["domain_shares", "file_table", "files_card", "leak_card", "length_bars", "side_cards", "unread_card"]

SHOWN = 4  # reasons named in a folded line
UNITS = {
    "line": (mark("{count} line"), mark("{count} lines")),
    "paragraph": (mark("{count} paragraph"), mark("{count} paragraphs")),
    "page": (mark("{count} page"), mark("{count} pages")),
}


def files_card(
    report: Mapping[str, Any], language: str, labels: Mapping[str, str] | None = None, project: int = 0, leaked: int = 0
) -> str:
    """Warnings, then the files with what was kept and skipped of each, and the languages found.

    `labels` are the domain labels given to some of the files; `project` is where links to single sentences lead; `leaked`
    counts sentences that also stand in test files.
    """
    if not report:
        return ""
    warnings = "".join(note(told(str(one))) for one in report.get("warnings", []))
    if leaked:
        many = trn(
            "One sentence of the samples stands in your test files too, so a test would flatter the plugin.",
            "{count} sentences of the samples stand in your test files too, so a test would flatter the plugin.",
            leaked,
        )
        link = f'<a href="/samples?project={project}&amp;view=leaks" data-go="view=leaks">{esc(tr("Show and exclude them"))}</a>'
        warnings += f'<p class="tm-note">{esc(many)} {link}</p>'
    shares = [(code, share) for code, share in report.get("languages", {}).items() if share >= 0.005]
    tags = " ".join(
        tag(f"{language_name(code)} {share:.0%}", "accent" if code == language else "") for code, share in shares
    )
    return warnings + titled(tr("Files"), file_table(report, labels, project), tags)


def unread_card(names: Sequence[str]) -> str:
    """Files of the project that the last reading did not come to, as when one of them is damaged; each can be removed."""
    if not names:
        return ""
    lines = "".join(
        f'<li><b>{esc(name)}</b> <button type="button" class="tm-text-button" data-remove="{esc(name)}" '
        f'aria-label="{esc(tr("Remove"))} {esc(name)}">{esc(tr("Remove"))}</button></li>'
        for name in names
    )
    return card(f'<ul class="tm-tests">{lines}</ul>', tr("Not read yet"))


def side_cards(report: Mapping[str, Any]) -> str:
    """Domains and lengths of the sentences."""
    if not report:
        return ""
    lengths = {int(length): int(count) for length, count in report.get("lengths", {}).items()}
    chart = card(length_bars(lengths), tr("Sentences by length, in characters")) if lengths else ""
    return f'<div class="tm-column">{domain_shares(report.get("domains", {}))}{chart}</div>'


def leak_card(leaks: Mapping[str, Any], names: Sequence[str], project: int) -> str:
    """The test files with what of each stands in the samples too; or what they are for, where none was named."""
    if not names:
        what = tr(
            "Name the files that you will test with. A sentence that stands in both makes a plugin look better than it is."
        )
        return f'<p class="tm-quiet">{esc(what)}</p>'
    found = {str(one.get("name")): one for one in leaks.get("files", [])}
    lines = ""
    for name in names:
        one = found.get(name)
        if one is None:
            state = f'<span class="tm-quiet">{esc(tr("being compared"))}</span>'
        elif one.get("error"):
            state = f'<span class="tm-bad">{esc(one["error"])}</span>'
        else:
            leaked, total = int(one.get("leaked", 0)), int(one.get("sentences", 0))
            query = urlencode({"view": "leaks", "file": name})
            counts = {"some": number(leaked), "all": number(total)}
            state = (
                f'<a href="{esc(f"/samples?project={project}&{query}")}" data-go="{esc(query)}">'
                f"{esc(tr('{some} of {all} are in the samples', **counts))}</a>"
                if leaked
                else f'<span class="tm-quiet">{esc(tr("none of {all} is in the samples", **counts))}</span>'
            )
        remove = f'<button type="button" class="tm-text-button" data-untest="{esc(name)}">{esc(tr("Remove"))}</button>'
        lines += f"<li><b>{esc(name)}</b> {remove}<br>{state}</li>"
    return f'<ul class="tm-tests">{lines}</ul>'


def domain_shares(domains: Mapping[str, int]) -> str:
    """Sentences by domain: one bar of shares above, a line for each below; nothing where there is but one."""
    if len(domains) < 2:
        return ""
    total = sum(domains.values())
    colours = [DOMAINS[min(place, len(DOMAINS) - 1)] for place in range(len(domains))]
    strip = "".join(
        f'<i style="width:{100 * count / total:.2f}%;background:{colour}" title="{esc(label or tr("no label"))}"></i>'
        for (label, count), colour in zip(domains.items(), colours, strict=True)
    )
    lines = "".join(
        f'<li><i style="background:{colour}"></i><span>{esc(label or tr("no label"))}</span>'
        f"<b>{number(count)}</b><small>{count / total:.0%}</small></li>"
        for (label, count), colour in zip(domains.items(), colours, strict=True)
    )
    return card(f'<div class="tm-strip">{strip}</div><ul class="tm-legend">{lines}</ul>', tr("Sentences by domain"))


def length_bars(lengths: Mapping[int, int]) -> str:
    """How long the sentences are, given how many have each length: up to twelve columns of a round width, the last one open."""
    ordered = sorted(lengths)
    total = sum(lengths.values())

    def quantile(share: float) -> int:
        seen = 0
        for length in ordered:
            seen += lengths[length]
            if seen > share * (total - 1):
                return length
        return ordered[-1]

    usual = quantile(0.98)
    width = next(step for step in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if usual < 12 * step)
    last = usual // width
    counts = [0] * (last + 1)
    for length, count in lengths.items():
        counts[min(length // width, last)] += count
    names = [
        f"{place * width}" + ("+" if place == last and ordered[-1] >= (last + 1) * width else "")
        for place in range(last + 1)
    ]
    return (
        bars(counts, names, tr("sentences"))
        + f'<p class="tm-quiet">{esc(tr("half of them have up to {count} characters", count=number(quantile(0.5))))}</p>'
    )


def file_table(report: Mapping[str, Any], labels: Mapping[str, str] | None = None, project: int = 0) -> str:
    """One row a file; below it, what was skipped and what is worth a look unfold to line, reason and excerpt."""
    files, labels = report.get("files", []), labels or {}
    several = len(files) > 1
    language = str(report.get("language", ""))
    rows, under = [], []
    for file in files:
        name = Path(str(file.get("name", ""))).name
        unit = str(file.get("unit", "line"))
        cells = [
            Cell(html=f"{esc(name)}{_below(file)}"),
            Cell(file.get("encoding", ""), kind="quiet"),
            Cell(_counted(file, unit), kind="num"),
            Cell(number(file.get("kept", 0)), kind="num"),
            Cell(number(sum(file.get("skipped", {}).values())), kind="num"),
        ]
        if several or labels:
            cells.append(Cell(html=_domain_field(name, labels.get(name, Path(name).stem))))
        if several:
            remove = (
                f'<button type="button" class="tm-text-button" data-remove="{esc(name)}">{esc(tr("Remove"))}</button>'
            )
            cells.append(Cell(html=remove, kind="num"))
        rows.append(cells)
        under.append(
            _found(file, "skipped", tr("Skipped"), language, project)
            + _found(file, "noticed", tr("Kept, worth a look"), language, project)
        )
    heads = [tr("file"), tr("encoding"), tr("lines"), tr("kept"), tr("skipped")]
    heads += [tr("domain")] * bool(several or labels) + [""] * several
    return table(heads, rows, numeric=[2, 3, 4], under=under)


def _below(file: Mapping[str, Any]) -> str:
    """How the file was understood, and what it says of its languages."""
    notes = [told(str(one)) for one in file.get("notes", [])]
    stated = dict(sorted(file.get("found", {}).items(), key=lambda item: -item[1]))
    if len(stated) > 1:
        shown = [f"{language_name(code)} {number(count)}" for code, count in list(stated.items())[:6]]
        more = [tr("{count} more", count=len(stated) - 6)] if len(stated) > 6 else []
        notes.append(tr("It holds {languages}.", languages=listed([*shown, *more]) if more else ", ".join(shown)))
    return "".join(f'<div class="tm-quiet">{esc(one)}</div>' for one in notes)


def _counted(file: Mapping[str, Any], unit: str) -> str:
    count = int(file.get("lines", 0))
    if unit == "line":
        return number(count)
    return trn(*UNITS[unit], count) if unit in UNITS else f"{number(count)} {unit}"


def _domain_field(name: str, label: str) -> str:
    return (
        f'<input type="text" class="tm-domain" data-domain="{esc(name)}" value="{esc(label)}" maxlength="40" '
        f'aria-label="{esc(tr("Domain of {name}", name=name))}">'
    )


def _found(file: Mapping[str, Any], kind: str, title: str, language: str, project: int) -> str:
    """The reasons with their counts, folded over the first lines of each and a way to all of them."""
    counts = dict(sorted(file.get(kind, {}).items(), key=lambda item: -item[1]))
    if not counts:
        return ""
    named = [f"{tr(reason)} {number(count)}" for reason, count in list(counts.items())[:SHOWN]]
    if len(counts) > SHOWN:
        named.append(trn("{count} more reason", "{count} more reasons", len(counts) - SHOWN))
    head = f"<summary>{esc(title)} <b>{number(sum(counts.values()))}</b>: {esc(', '.join(named))}</summary>"
    unit = str(file.get("unit", "line"))
    lines = []
    for reason, count in counts.items():
        shown = file.get("examples", {}).get(reason, [])
        for place, (line, text) in enumerate(shown):
            words = _all_of(kind, reason, count, str(file.get("name", "")), project) if place == 0 else ""
            lines.append([Cell(html=words, kind="quiet"), Cell(number(line), kind="num"), Cell(text, lang=language)])
    inner = table([tr("reason"), tr(unit), tr("text")], lines, numeric=[1], kind="tm-skips") if lines else ""
    return f'<details class="tm-more">{head}{inner}</details>'


def _all_of(kind: str, reason: str, count: int, name: str, project: int) -> str:
    """The reason with its count; a link to all its sentences, where there is a project."""
    words = f"{tr(reason)} ({number(count)})"
    view = "near" if reason == NEAR_DUPLICATE else "decided" if reason == EXCLUDED else kind
    if not project:
        return esc(words)
    wanted = {
        "view": view,
        "reason": "" if view in ("near", "decided") else reason,
        "file": "" if view == "decided" else name,
    }
    query = urlencode({key: value for key, value in wanted.items() if value})
    return f'<a href="{esc(f"/samples?project={project}&{query}")}" data-go="{esc(query)}">{esc(words)}</a>'
