"""What an import found, for the page Samples: files, what was skipped, what is worth a look, domains, examples, lengths."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studio.catalog import language_name
from studio.html import Cell, bars, card, esc, note, number, table, tag, titled
from studio.theme import DOMAINS

__all__ = ["domain_shares", "file_table", "length_bars", "report_cards"]

SHOWN = 4  # reasons named in a folded line


def report_cards(
    report: Mapping[str, Any],
    sentences: Sequence[Mapping[str, Any]],
    language: str,
    names: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> str:
    """Files with what was kept and skipped, languages, domains and warnings, and ten sentences.

    `names` are the project's files; `labels` the domain labels given to some of them.
    """
    if not report:
        return ""
    warnings = "".join(note(str(one)) for one in report.get("warnings", []))
    shares = [(code, share) for code, share in report.get("languages", {}).items() if share >= 0.005]
    tags = " ".join(
        tag(f"{language_name(code)} {share:.0%}", "accent" if code == language else "") for code, share in shares
    )
    files = titled("Files", file_table(report, labels), tags)
    if not sentences:
        return warnings + files
    chosen = random.Random(len(sentences)).sample(range(len(sentences)), min(10, len(sentences)))
    rows = [
        [
            Cell(sentences[place].get("text", ""), lang=language),
            Cell(_place(sentences[place], len(names) > 1), "", "num quiet"),
        ]
        for place in sorted(chosen)
    ]
    body = table(["sentence", "line"], rows, numeric=[1])
    examples = titled(f"{len(rows)} of {number(len(sentences))} sentences, at random", body)
    lengths = card(length_bars([str(one.get("text", "")) for one in sentences]), "Sentences by length, in characters")
    side = f'<div class="tm-column">{domain_shares(report.get("domains", {}))}{lengths}</div>'
    return f'{warnings}{files}<div class="tm-two">{examples}{side}</div>'


def domain_shares(domains: Mapping[str, int]) -> str:
    """Sentences by domain: one bar of shares above, a line for each below; nothing where there is but one."""
    if len(domains) < 2:
        return ""
    total = sum(domains.values())
    colours = [DOMAINS[min(place, len(DOMAINS) - 1)] for place in range(len(domains))]
    strip = "".join(
        f'<i style="width:{100 * count / total:.2f}%;background:{colour}" title="{esc(label or "no label")}"></i>'
        for (label, count), colour in zip(domains.items(), colours, strict=True)
    )
    lines = "".join(
        f'<li><i style="background:{colour}"></i><span>{esc(label or "no label")}</span>'
        f"<b>{number(count)}</b><small>{count / total:.0%}</small></li>"
        for (label, count), colour in zip(domains.items(), colours, strict=True)
    )
    return card(f'<div class="tm-strip">{strip}</div><ul class="tm-legend">{lines}</ul>', "Sentences by domain")


def length_bars(texts: Sequence[str]) -> str:
    """How long the sentences are: up to twelve columns of a round width, the last one open."""
    lengths = sorted(len(text) for text in texts)
    usual = lengths[int(0.98 * (len(lengths) - 1))]
    width = next(step for step in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if usual < 12 * step)
    last = usual // width
    counts = [0] * (last + 1)
    for length in lengths:
        counts[min(length // width, last)] += 1
    names = [
        f"{place * width}" + ("+" if place == last and lengths[-1] >= (last + 1) * width else "")
        for place in range(last + 1)
    ]
    middle = lengths[len(lengths) // 2]
    return (
        bars(counts, names, "sentences")
        + f'<p class="tm-quiet">half of them have up to {number(middle)} characters</p>'
    )


def _place(sentence: Mapping[str, Any], several: bool) -> str:
    line = number(sentence.get("line", 0))
    return f"{Path(str(sentence.get('file', ''))).name} {line}" if several else line


def file_table(report: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> str:
    """One row a file; below it, what was skipped and what is worth a look unfold to line, reason and excerpt."""
    files, labels = report.get("files", []), labels or {}
    several = len(files) > 1
    language = str(report.get("language", ""))
    rows, under = [], []
    for file in files:
        name = Path(str(file.get("name", ""))).name
        notes = "".join(f'<div class="tm-quiet">{esc(one)}</div>' for one in file.get("notes", []))
        cells = [
            Cell(html=f"{esc(name)}{notes}"),
            Cell(file.get("encoding", ""), kind="quiet"),
            Cell(number(file.get("lines", 0)), kind="num"),
            Cell(number(file.get("kept", 0)), kind="num"),
            Cell(number(sum(file.get("skipped", {}).values())), kind="num"),
        ]
        if several or labels:
            cells.append(Cell(html=_domain_field(name, labels.get(name, Path(name).stem))))
        if several:
            remove = f'<button type="button" class="tm-text-button" data-remove="{esc(name)}">Remove</button>'
            cells.append(Cell(html=remove, kind="num"))
        rows.append(cells)
        under.append(
            _found(file, "skipped", "Skipped", language) + _found(file, "noticed", "Kept, worth a look", language)
        )
    heads = ["file", "encoding", "lines", "kept", "skipped"]
    heads += ["domain"] * bool(several or labels) + [""] * several
    return table(heads, rows, numeric=[2, 3, 4], under=under)


def _domain_field(name: str, label: str) -> str:
    return (
        f'<input type="text" class="tm-domain" data-domain="{esc(name)}" value="{esc(label)}" maxlength="40" '
        f'aria-label="Domain of {esc(name)}">'
    )


def _found(file: Mapping[str, Any], kind: str, title: str, language: str) -> str:
    """The reasons with their counts, folded over the first lines of each."""
    counts = dict(sorted(file.get(kind, {}).items(), key=lambda item: -item[1]))
    if not counts:
        return ""
    named = [f"{reason} {number(count)}" for reason, count in list(counts.items())[:SHOWN]]
    if len(counts) > SHOWN:
        named.append(f"{len(counts) - SHOWN} more reasons" if len(counts) > SHOWN + 1 else "1 more reason")
    head = f"<summary>{title} <b>{number(sum(counts.values()))}</b>: {esc(', '.join(named))}</summary>"
    lines = []
    for reason, count in counts.items():
        shown = file.get("examples", {}).get(reason, [])
        for place, (line, text) in enumerate(shown):
            words = f"{reason} ({number(count)})" if place == 0 else ""
            lines.append([Cell(words, kind="quiet"), Cell(number(line), kind="num"), Cell(text, lang=language)])
    inner = table(["reason", "line", "text"], lines, numeric=[1], kind="tm-skips") if lines else ""
    return f'<details class="tm-more">{head}{inner}</details>'
