"""Individual sentences of the samples in addressable views: random, all, with warnings, near-duplicates, skipped, decided, in test
files. Independent of Gradio; no file is read as a whole to show one page."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from engine.core.numerals import whole_number
from engine.corpora.corpus import CORPUS_FILE, NOTICED_FILE, SKIPPED_FILE
from engine.corpora.leakage import LEAK_ROWS
from engine.corpora.overrides import Decisions, segment_key
from engine.corpora.report import EXCLUDED
from engine.corpora.warnings import NEAR_DUPLICATE
from engine.errors import InputError
from studio.i18n.translate import mark
from studio.services.files import JsonRow
from studio.services.jsonl_pages import JsonlPager, open_lines

PAGE = 25
RANDOM = 10
VIEWS = {
    "random": mark("Random"),
    "kept": mark("All"),
    "noticed": mark("With warnings"),
    "near": mark("Near-duplicates"),
    "skipped": mark("Skipped"),
    "decided": mark("Decided"),
    "leaks": mark("In test files"),
}


@dataclass(frozen=True)
class View:
    """Which sentences to show: a view, its filters, and the first row."""

    view: str = "random"
    reason: str = ""
    words: str = ""
    file: str = ""
    domain: str = ""
    at: int = 0
    seed: int = 1

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> View:
        """Create a view from address parameters; invalid ones are replaced by defaults."""

        def number(name: str, low: int) -> int:
            return max(low, whole_number(query.get(name)) or low)

        def text(name: str) -> str:
            return str(query.get(name, ""))[:300]

        name = text("view")
        return cls(
            view=name if name in VIEWS else "random",
            reason=text("reason"),
            words=text("words"),
            file=text("file"),
            domain=text("domain"),
            at=number("at", 0),
            seed=number("seed", 1),
        )

    def query(self, **changes: Any) -> str:
        """The address parameters of this view with some changes; `at` returns to 0 unless it is given."""
        changed = replace(self, **{"at": 0, **changes})
        values = {name: value for name, value in vars(changed).items() if value not in ("", 0)}
        if changed.seed == 1 or changed.view != "random":
            values.pop("seed", None)
        return urlencode(values)


@dataclass(frozen=True)
class Item:
    """One sentence as a row: its text, location, warnings, and the decision about it."""

    text: str
    key: str
    source: str | None = None
    file: str = ""
    line: int = 0
    domain: str = ""
    notes: tuple[str, ...] = ()
    beside: str = ""  # the near-duplicate's counterpart, or the test sentence
    beside_location: str = ""
    imported: bool = True  # in the corpus; False if skipped
    usable: bool = True  # whether it can be decided on
    decided: str = ""  # "exclude", "approve" or ""


@dataclass(frozen=True)
class Listing:
    """A page of a view. `reasons` maps the reasons to filter by to their counts."""

    view: View
    items: list[Item]
    total: int
    reasons: dict[str, int] = field(default_factory=dict)


def view_counts(report: Mapping[str, Any], leaks: Mapping[str, Any], decisions: Decisions) -> dict[str, int | None]:
    """The number of sentences in each view; None for views without a count."""
    noticed = report.get("noticed", {})
    skipped = {reason: count for reason, count in report.get("skipped", {}).items() if reason != EXCLUDED}
    return {
        "random": None,
        "kept": int(report.get("kept", 0)),
        "noticed": sum(count for reason, count in noticed.items() if reason != NEAR_DUPLICATE),
        "near": int(noticed.get(NEAR_DUPLICATE, 0)),
        "skipped": sum(skipped.values()),
        "decided": len(decisions.excluded) + len(decisions.approved),
        "leaks": int(leaks.get("samples", 0)),
    }


def listing(workspace: Path, report: Mapping[str, Any], decisions: Decisions, view: View) -> Listing:
    """One page of the sentences of a view."""
    positions, reasons = _positions(workspace, report, decisions, view)
    if view.view == "random":
        return Listing(view, _items(workspace, decisions, view, positions), len(positions), reasons)
    start = view.at if view.at < len(positions) else 0
    page_positions = positions[start : start + PAGE]
    return Listing(replace(view, at=start), _items(workspace, decisions, view, page_positions), len(positions), reasons)


def chosen(workspace: Path, report: Mapping[str, Any], decisions: Decisions, view: View, key: str) -> dict[str, str]:
    """{key: text} of the sentence of the view with that key, or, for an empty key, of all that can be decided on.

    Raises InputError if the key no longer exists.
    """
    positions, _ = _positions(workspace, report, decisions, view)
    items = [item for item in _items(workspace, decisions, view, positions) if item.usable and key in ("", item.key)]
    if key and not items:
        raise InputError("The samples were read again in the meantime. Reload the page.")
    return {item.key: item.text for item in items}


# -- where the rows of a view are


def _positions(
    workspace: Path, report: Mapping[str, Any], decisions: Decisions, view: View
) -> tuple[Sequence[Any], dict[str, int]]:
    """Positions of the sentences of a view (lines of a file, or keys), and the counts of the reasons to filter by."""
    if view.view == "decided":
        return _decided(decisions, view.words), {}
    lines = _lines_of(workspace, view)
    if lines is None:
        return [], {}
    if view.view == "random":
        return sorted(random.Random(view.seed).sample(range(len(lines)), min(RANDOM, len(lines)))), {}
    if view.view == "skipped":
        counts = {reason: count for reason, count in report.get("skipped", {}).items() if reason != EXCLUDED}
        fits = _fitting(file=view.file, reason=view.reason, but=EXCLUDED)
        return lines.search(view.words, fits, ("skipped", view.file, view.reason)), counts
    if view.view == "leaks":
        return lines.search(view.words, _fitting(file=view.file), ("leaks", view.file)), {}
    if view.view == "kept":
        if not view.file and not view.domain:
            return lines.search(view.words), {}
        return lines.search(view.words, _fitting(file=view.file, domain=view.domain), ("kept", view.file, view.domain)), {}
    noticed = _noticed_rows(workspace)
    near = view.view == "near"
    counts = {} if near else {r: count for r, count in report.get("noticed", {}).items() if r != NEAR_DUPLICATE}
    matching = {
        row for row, notes in noticed.items()
        if any((note["reason"] == NEAR_DUPLICATE) == near and view.reason in ("", note["reason"]) for note in notes)
    }  # fmt: skip
    if view.words or view.file:
        result = lines.search(view.words, _fitting(file=view.file), ("kept", view.file, ""))
        matching &= set(result)
    if not near:
        return sorted(matching), counts
    # Near-duplicates of the same sentence are grouped.
    like = {row: min(int(note.get("like", row)) for note in noticed[row]) for row in matching}
    return sorted(matching, key=lambda row: (like[row], row)), counts


def _lines_of(workspace: Path, view: View) -> JsonlPager | None:
    return open_lines(workspace / {"skipped": SKIPPED_FILE, "leaks": LEAK_ROWS}.get(view.view, CORPUS_FILE))


def _fitting(file: str = "", domain: str = "", reason: str = "", but: str = "") -> Any:
    def fits(row: Mapping[str, Any]) -> bool:
        return (
            (not file or row.get("file") == file)
            and (not domain or row.get("domain", "") == domain)
            and (not reason or row.get("reason") == reason)
            and (not but or row.get("reason") != but)
        )

    return fits


def _decided(decisions: Decisions, words: str) -> list[str]:
    """Keys of decided sentences whose text contains `words`, the latest decision first."""
    results = [*decisions.excluded.items(), *decisions.approved.items()]
    order = {key: index for index, step in enumerate(decisions.steps) for key in step["keys"]}
    needle = words.strip().casefold()
    keys = [key for key, text in results if needle in text.casefold()]
    return sorted(keys, key=lambda key: -order.get(key, 0))


def _noticed_rows(workspace: Path) -> Mapping[int, list[JsonRow]]:
    lines = open_lines(workspace / NOTICED_FILE)
    return _by_row(lines) if lines else {}


@lru_cache(maxsize=8)
def _by_row(lines: JsonlPager) -> Mapping[int, list[JsonRow]]:
    result: dict[int, list[JsonRow]] = {}
    for row in lines.all():
        if isinstance(row.get("row"), int) and "reason" in row:
            result.setdefault(row["row"], []).append(row)
    return result


# -- the rows


def _items(workspace: Path, decisions: Decisions, view: View, positions: Sequence[Any]) -> list[Item]:
    if view.view == "decided":
        return [_of_decision(decisions, key) for key in positions]
    lines = _lines_of(workspace, view)
    if lines is None:
        return []
    rows = lines.get(positions)
    if view.view == "skipped":
        return [_of_skip(row, decisions) for row in rows]
    if view.view == "leaks":
        return [_of_leak(row, decisions) for row in rows]
    noticed = _noticed_rows(workspace)
    # Near-duplicates are shown next to the sentence that they resemble.
    likes = {position: note["like"] for position in positions for note in noticed.get(position, ()) if "like" in note}
    beside = dict(zip(likes.values(), lines.get(list(likes.values())), strict=False))
    results = []
    for position, row in zip(positions, rows, strict=False):
        notes = tuple(_note(note) for note in noticed.get(position, ()))
        like = beside.get(likes.get(position, -1), {})
        results.append(_of_row(row, decisions, notes, like))
    return results


def _note(note: Mapping[str, Any]) -> str:
    return f"{note['reason']}: {note['note']}" if note.get("note") else str(note["reason"])


def _state(decisions: Decisions, key: str) -> str:
    return "exclude" if key in decisions.excluded else "approve" if key in decisions.approved else ""


def _item(row: Mapping[str, Any], decisions: Decisions, notes: tuple[str, ...], **more: Any) -> Item:
    text, source = str(row.get("text", "")), row.get("source")
    key = segment_key(text, source)
    return Item(text, key, source, notes=notes, decided=_state(decisions, key), **more)


def _place(row: Mapping[str, Any]) -> dict[str, object]:
    return {"file": str(row.get("file", "")), "line": int(row.get("line", 0))}


def _of_row(row: Mapping[str, Any], decisions: Decisions, notes: tuple[str, ...], like: Mapping[str, Any]) -> Item:
    position = f"{like.get('file', '')} {like.get('line', '')}" if like else ""
    beside = {"beside": str(like.get("text", "")), "beside_location": position}
    return _item(row, decisions, notes, domain=str(row.get("domain", "")), **_place(row), **beside)


def _of_skip(row: Mapping[str, Any], decisions: Decisions) -> Item:
    notes = (str(row.get("reason", "")),)
    return _item(row, decisions, notes, imported=False, usable=bool(row.get("usable")), **_place(row))


def _of_leak(row: Mapping[str, Any], decisions: Decisions) -> Item:
    same = mark("the same") if row.get("same") else mark("nearly the same")
    position = f"{row.get('file', '')} {row.get('line', '')}"
    return _item(row, decisions, (same,), beside=str(row.get("test", "")), beside_location=position)


def _of_decision(decisions: Decisions, key: str) -> Item:
    excluded = key in decisions.excluded
    text = (decisions.excluded if excluded else decisions.approved)[key]
    return Item(text, key, decided="exclude" if excluded else "approve")
