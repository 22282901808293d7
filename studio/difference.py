"""The Compare table: source, vanilla, customized, with only the changed words marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.html import esc, lang_attribute, tag

__all__ = ["compare_table", "count_different", "marked"]


def marked(vanilla: str, customized: str, language: str) -> tuple[str, str]:
    """Both texts as safe HTML: what the plugin replaced in the first, its new wording in the second."""
    from engine.evaluation.diff import word_diff

    old, new = "", ""
    for kind, before, after in word_diff(vanilla, customized, language):
        if kind == "equal":
            old, new = old + esc(before), new + esc(after)
        else:
            old += f'<mark class="old">{esc(before)}</mark>' if before else ""
            new += f'<mark class="new">{esc(after)}</mark>' if after else ""
    return old, new


def count_different(rows: Sequence[Mapping[str, Any]]) -> int:
    """Sentences whose two translations are not the same."""
    return sum(1 for row in rows if row.get("customized") is not None and row["customized"] != row.get("vanilla"))


def compare_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    source: str,
    target: str,
    source_name: str,
    base: str,
    plugin: str = "",
    method: str = "",
    strength: float = 1.0,
    dial: bool = True,
) -> str:
    """The table. `rows` hold `source`, `vanilla` and `customized` (None while it is not made); `source` and `target`
    are language codes. Without a `plugin` there is no third column."""
    columns = '<col class="n"><col class="source"><col><col>' if plugin else '<col class="n"><col class="source"><col>'
    count = f"{len(rows)} {'sentence' if len(rows) == 1 else 'sentences'}"
    heads = f"<th></th><th>{esc(source_name)} {tag(count)}</th><th>Vanilla {tag('base ' + base)}</th>"
    if plugin:
        heads += f"<th>{esc(plugin)} {tag(method, 'accent')}{_dial(strength) if dial else ''}</th>"
    body = "".join(_row(place, row, source, target, bool(plugin)) for place, row in enumerate(rows, 1))
    return (
        f'<div class="tm-card tm-compare-card"><table class="tm tm-compare"><colgroup>{columns}</colgroup>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{_foot(rows, bool(plugin))}</div>"
    )


def _row(place: int, row: Mapping[str, Any], source: str, target: str, with_plugin: bool) -> str:
    vanilla, customized = row.get("vanilla"), row.get("customized")
    waiting = '<td class="tm-pending">…</td>'
    if with_plugin and vanilla is not None and customized is not None:
        old, new = marked(vanilla, customized, target)
        cells = f"<td{lang_attribute(target)}>{old}</td><td{lang_attribute(target)}>{new}</td>"
    else:
        cells = waiting if vanilla is None else f"<td{lang_attribute(target)}>{esc(vanilla)}</td>"
        cells += waiting if with_plugin else ""
    text = f'<td class="source"{lang_attribute(source)}>{esc(row.get("source", ""))}</td>'
    return f'<tr><td class="n">{place}</td>{text}{cells}</tr>'


def _dial(strength: float) -> str:
    return (
        '<div class="tm-dial"><label for="tm-strength">strength</label>'
        f'<input id="tm-strength" type="range" min="0" max="1" step="0.05" value="{strength:g}">'
        f"<output>{strength:g}</output></div>"
    )


def _foot(rows: Sequence[Mapping[str, Any]], with_plugin: bool) -> str:
    if not with_plugin:
        return '<div class="tm-compare-foot">The base alone. Train or import a plugin to see what it changes.</div>'
    done = sum(1 for row in rows if row.get("customized") is not None)
    count = (
        f"{count_different(rows)} of {len(rows)} sentences differ"
        if done == len(rows)
        else f"{done} of {len(rows)} done"
    )
    return (
        f'<div class="tm-compare-foot">{count} · <mark class="new">changed by the plugin</mark> '
        '<mark class="old">vanilla wording</mark></div>'
    )
