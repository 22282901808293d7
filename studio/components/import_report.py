"""The import report for the page Samples: files, skipped sentences, warnings, domains, lengths, test files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from engine.corpora.report import EXCLUDED
from engine.corpora.warnings import ANOTHER_LANGUAGE, NEAR_DUPLICATE
from studio.components.html import bars, lang_attribute, number
from studio.components.plotly import domain_colours
from studio.components.templating import render
from studio.i18n.translate import listed, mark, percent, tr, translate_message, trn
from studio.services.catalog import language_name

SHOWN = 4  # reasons named in the summary of a folded list
OTHERS = "count-sentences-are-not-in-language-most-of"  # code of the warning about many sentences in another language
COLUMNS = 12  # in the chart of lengths
UNITS = {
    "line": (mark("{count} line"), mark("{count} lines")),
    "paragraph": (mark("{count} paragraph"), mark("{count} paragraphs")),
    "page": (mark("{count} page"), mark("{count} pages")),
}


def files_card(
    report: Mapping[str, Any],
    language: str = "",
    labels: Mapping[str, str] | None = None,
    project: int = 0,
    leaked: int = 0,
    removed: Sequence[str] = (),
) -> str:
    """Warnings, then the files with the numbers of kept and skipped sentences, and their languages.

    `labels`: domain labels by file name; `project`: the project id for links to sentences; `leaked`: number of sentences that
    also occur in test files; `removed`: files that are no longer listed.
    """
    if not report:
        return ""
    files = [
        file
        for file in report.get("files", [])
        if (file.get("kept") or not file.get("error")) and Path(str(file.get("name", ""))).name not in removed
    ]
    shares = [(code, share) for code, share in report.get("languages", {}).items() if share >= 0.005]
    return render(
        "import_files.html",
        warnings=[
            (translate_message(warning), _query("noticed", ANOTHER_LANGUAGE, "") if getattr(warning, "code", "") == OTHERS else "")
            for warning in report.get("warnings", [])
        ],
        leaked=leaked,
        project=project,
        languages=[(f"{language_name(code)} {percent(share)}", code == language) for code, share in shares],
        several=len(files) > 1,
        labelled=len(files) > 1 or bool(labels),
        files=[_file(file, labels or {}, project) for file in files],
        language=Markup(lang_attribute(str(report.get("language", "")))),
    )


def unread_card(
    files: Mapping[str, str], removed: Sequence[str] = (), refused: Mapping[str, str] | None = None, *, changed: bool = False
) -> str:
    """Files of the project that were not read completely, with the reason; each can be removed, and `removed` ones restored.
    The card also lists `refused` files, which are not in the project. If the files have `changed`, a bar states when that takes
    effect.
    """
    if not files and not removed and not refused and not changed:
        return ""
    reasons = [(name, translate_message(why)) for name, why in files.items()]
    outside = [(name, translate_message(why)) for name, why in (refused or {}).items()]
    return render("import_unread.html", files=reasons, removed=removed, refused=outside, changed=changed)


def side_cards(report: Mapping[str, Any]) -> str:
    """Cards with the domains and lengths of the sentences."""
    if not report:
        return ""
    domains = report.get("domains", {})
    total = sum(domains.values())
    coloured = zip(domains.items(), domain_colours(list(domains)), strict=True)
    most_first = sorted(coloured, key=lambda item: -item[0][1])
    lengths = {int(length): int(count) for length, count in report.get("lengths", {}).items()}
    return render(
        "import_sides.html",
        domains=[
            {"label": label or tr("no label"), "count": count, "share": count / total, "colour": colour}
            for (label, count), colour in most_first
        ],
        lengths=Markup(length_bars(lengths)) if lengths else "",
        median=_quantile(lengths, 0.5) if lengths else 0,
    )


def leak_card(leaks: Mapping[str, Any], names: Sequence[str], project: int, refused: Mapping[str, str] | None = None) -> str:
    """The test files with their overlap with the samples, and `refused` files; an explanation if there are none."""
    by_name = {str(file.get("name")): {"leaked": 0, "sentences": 0, "error": "", **file} for file in leaks.get("files", [])}
    files = [{"name": name, "leaks": by_name.get(name), "query": urlencode({"view": "leaks", "file": name})} for name in names]
    return render("import_tests.html", files=files, project=project, refused=refused or {})


def length_bars(lengths: Mapping[int, int]) -> str:
    """A histogram of sentence lengths from {length: count}: at most `COLUMNS` columns of a round width, the last one open-ended."""
    usual, longest = _quantile(lengths, 0.98), max(lengths)
    width = next(step for step in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if usual < COLUMNS * step)
    last = usual // width
    counts = [0] * (last + 1)
    for length, count in lengths.items():
        counts[min(length // width, last)] += count
    names = [
        f"{position * width}" + ("+" if position == last and longest >= (last + 1) * width else "") for position in range(last + 1)
    ]
    return bars(counts, names, tr("sentences"))


def _quantile(lengths: Mapping[int, int], share: float) -> int:
    """The quantile `share` of the sentence lengths."""
    below, total = 0, sum(lengths.values())
    for length in sorted(lengths):
        below += lengths[length]
        if below > share * (total - 1):
            return length
    return max(lengths)


def _file(file: Mapping[str, Any], labels: Mapping[str, str], project: int) -> dict[str, object]:
    """A row of the table of files, with its folded lists of skipped sentences and warnings."""
    name = Path(str(file.get("name", ""))).name
    titles = {"skipped": tr("Skipped"), "noticed": tr("Imported with warnings")}
    return {
        "name": name,
        "notes": _notes(file),
        "encoding": file.get("encoding", ""),
        "lines": _counted(file),
        "kept": file.get("kept", 0),
        "skipped": sum(file.get("skipped", {}).values()),
        "domain": labels.get(name, Path(name).stem),
        "folds": [_reasons(file, kind, title, project) for kind, title in titles.items() if file.get(kind)],
    }


def _notes(file: Mapping[str, Any]) -> list[str]:
    """Notes on how the file was read, and the languages stated in it."""
    notes = [translate_message(note) for note in file.get("notes", [])]
    stated = sorted(file.get("found", {}).items(), key=lambda item: -item[1])
    if len(stated) > 1:
        first = [f"{language_name(code)} {number(count)}" for code, count in stated[:6]]
        more = [tr("{count} more", count=len(stated) - 6)] if len(stated) > 6 else []
        notes.append(tr("It contains {languages}.", languages=listed([*first, *more]) if more else ", ".join(first)))
    return notes


def _counted(file: Mapping[str, Any]) -> str:
    count, unit = int(file.get("lines", 0)), str(file.get("unit", "line"))
    if unit == "line":
        return number(count)
    return trn(*UNITS[unit], count) if unit in UNITS else f"{number(count)} {unit}"


def _reasons(file: Mapping[str, Any], kind: str, title: str, project: int) -> dict[str, object]:
    """A folded list: the reasons with their counts, the first lines for each, and a link to all of them."""
    counts = dict(sorted(file[kind].items(), key=lambda item: -item[1]))
    named = [f"{tr(reason)} {number(count)}" for reason, count in list(counts.items())[:SHOWN]]
    if len(counts) > SHOWN:
        named.append(trn("{count} more reason", "{count} more reasons", len(counts) - SHOWN))
    lines = []
    for reason, count in counts.items():
        query = _query(kind, reason, str(file.get("name", ""))) if project else ""
        for index, (line, text) in enumerate(file.get("examples", {}).get(reason, [])):
            words = f"{tr(reason)} ({number(count)})" if index == 0 else ""
            lines.append({"reason": words, "query": query if index == 0 else "", "number": line, "text": text})
    unit = str(file.get("unit", "line"))
    return {"title": title, "count": sum(counts.values()), "reasons": ", ".join(named), "unit": unit, "lines": lines}


def _query(kind: str, reason: str, name: str) -> str:
    """The address parameters of the view with all sentences for a reason."""
    if reason == EXCLUDED:
        return urlencode({"view": "decided"})
    view = {"view": "near"} if reason == NEAR_DUPLICATE else {"view": kind, "reason": reason}
    return urlencode(view | ({"file": name} if name else {}))
