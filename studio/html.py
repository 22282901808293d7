"""Small pieces of HTML, always escaped. Whatever a user typed or uploaded passes through `esc`."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from studio.i18n import tr

__all__ = [
    "Cell",
    "bar",
    "bars",
    "card",
    "empty",
    "esc",
    "figure",
    "gated",
    "lang_attribute",
    "note",
    "number",
    "shown_if",
    "size",
    "table",
    "tag",
    "titled",
    "view",
    "visible_if",
    "way",
]


def esc(text: object) -> str:
    """Text made safe for HTML, inside quoted attributes too."""
    return html.escape(str(text), quote=True)


@dataclass(frozen=True)
class Cell:
    """A table cell: `text` is escaped; `html` (already safe) is used instead when given."""

    text: object = ""
    html: str = ""
    kind: str = ""  # CSS classes: "num", "quiet"
    lang: str = ""

    def render(self) -> str:
        classes = f' class="{esc(self.kind)}"' if self.kind else ""
        return f"<td{classes}{lang_attribute(self.lang)}>{self.html or esc(self.text)}</td>"


RIGHT_TO_LEFT = ("ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi")


def lang_attribute(code: str, *, auto: bool = False) -> str:
    """` lang="zh"`, so that the browser takes the right glyphs and the style sheet the right size; empty for none.

    Texts of languages that are written from right to left are marked so; with `auto`, for what may be of any language, the
    browser looks at the text itself.
    """
    bare = code.replace("_", "-").split("-", maxsplit=1)[0].lower()
    way = "auto" if auto else "rtl" if bare in RIGHT_TO_LEFT else ""
    return (f' lang="{esc(code)}"' if code else "") + (f' dir="{way}"' if way else "")


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    numeric: Sequence[int] = (),
    kind: str = "",
    keys: Sequence[object] = (),
    under: Sequence[str] = (),
) -> str:
    """A table in the studio's look. `numeric` names the columns whose head stands at the right; with `keys`, one a row,
    rows can be clicked and carry theirs as `data-key`; `under`, one a row, is safe HTML below it over the whole width."""
    head = "".join(
        f'<th class="{"num" if place in numeric else ""}">{esc(name)}</th>' if name else "<td></td>"
        for place, name in enumerate(heads)
    )
    body = ""
    for place, row in enumerate(rows):
        key = f' data-key="{esc(keys[place])}" tabindex="0"' if keys else ""
        body += f"<tr{key}>{''.join(cell.render() for cell in row)}</tr>"
        if under and under[place]:
            body += f'<tr class="tm-under"><td colspan="{len(heads)}">{under[place]}</td></tr>'
    return f'<table class="tm {esc(kind)}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def tag(text: object, kind: str = "") -> str:
    """A small rounded label; `kind` is "", "accent", "done" or "bad"."""
    return f'<span class="tm-tag {esc(kind)}">{esc(text)}</span>'


def card(body: str, title: str = "", *, pad: bool = True) -> str:
    """A white card around safe HTML, with an optional quiet title."""
    head = f"<h2>{esc(title)}</h2>" if title else ""
    return f'<div class="tm-card {"tm-pad" if pad else ""}">{head}{body}</div>'


def titled(title: str, body: str, right: str = "") -> str:
    """A card with a title line and, at its right, `right`; both `body` and `right` are safe HTML, `body` edge to edge."""
    return f'<div class="tm-card"><div class="tm-card-head"><h2>{esc(title)}</h2><span>{right}</span></div>{body}</div>'


def empty(title: str, text: str = "", more: str = "") -> str:
    """What a page shows while there is nothing: one sentence and the next step (`more` is safe HTML)."""
    return f'<div class="tm-card tm-empty"><b>{esc(title)}</b>{esc(text)}{more}</div>'


def way(place: str, words: str) -> str:
    """The next step of an empty page: a link below its sentence."""
    return f'<p class="tm-way"><a href="{esc(place)}">{esc(words)}</a></p>'


def note(text: str, *, bad: bool = False) -> str:
    """A warning sentence with a coloured edge; `bad` for a failure."""
    return f'<p class="tm-note {"tm-fail" if bad else ""}">{esc(text)}</p>'


def bar(share: float, label: str = "") -> str:
    """A thin progress bar, `share` from 0 to 1; `label` says of what."""
    percent = 100 * min(1.0, max(0.0, share))
    name = esc(label or tr("Progress"))
    said = f'role="progressbar" aria-label="{name}" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{percent:.0f}"'
    return f'<div class="tm-bar" {said}><i style="width:{percent:.1f}%"></i></div>'


def figure(title: str, before: str, after: str, below: str) -> str:
    """A figure card: what it was, what it is, and how sure that is."""
    change = f"<s>{esc(before)}</s><span>→</span>" if before else ""
    return (
        f'<div class="tm-card tm-figure"><h2>{esc(title)}</h2><div class="value">{change}{esc(after)}</div>'
        f"<p>{esc(below)}</p></div>"
    )


def bars(counts: Sequence[int], names: Sequence[str], unit: str) -> str:
    """A small column chart as SVG, in the style sheet's colours; the figure of each column shows on hover.

    `names` stand under the columns, every second one where there are many; `unit` is what is counted.
    """
    width, height, gap = 100.0, 96.0, 1.2
    step, most = width / max(1, len(counts)), max([*counts, 1])
    body = ""
    for place, (count, name) in enumerate(zip(counts, names, strict=True)):
        tall = height * count / most
        body += (
            f'<g><title>{esc(name)}: {number(count)} {esc(unit)}</title><rect class="tm-hit" x="{place * step:.2f}" y="0" '
            f'width="{step:.2f}" height="{height:.0f}"/><rect x="{place * step + gap / 2:.2f}" y="{height - tall:.2f}" '
            f'width="{step - gap:.2f}" height="{tall:.2f}"/></g>'
        )
    every = 1 + len(counts) // 11
    labels = "".join(f"<span>{esc(name) if place % every == 0 else ''}</span>" for place, name in enumerate(names))
    svg = f'<svg viewBox="0 0 {width:.0f} {height:.0f}" preserveAspectRatio="none" role="img" aria-label="{esc(unit)}">{body}</svg>'
    return f'<div class="tm-bars">{svg}<div>{labels}</div></div>'


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separated; an en dash for none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def size(count: int | None) -> str:
    """Bytes as a person says them: `38 MB`."""
    if count is None:
        return "–"
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= divisor:
            value = count / divisor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{count} B"


def view(value: str = "", *, classes: str = "", script: str | None = None, **more: Any) -> Any:
    """A `gr.HTML` without Gradio's own type rules. `script` runs once; delegate events to `element` there."""
    import gradio as gr

    return gr.HTML(
        value,
        apply_default_css=False,
        padding=False,
        container=False,
        js_on_load=script,
        elem_classes=classes or None,
        **more,
    )


_ABSENT = '<i class="tm-absent"></i>'


@contextlib.contextmanager
def gated(layout: Callable[..., Any], **more: Any) -> Iterator[Any]:
    """A row or column of the page that comes and goes: hidden until its output is `shown_if(True)`.

    It is laid out from the start, and the style sheet hides it. What Gradio's own `visible=False` leaves out is loaded when
    it is to appear, and now and then Gradio misses that while other events fill the page.
    """
    gate = view(_ABSENT, classes="tm-gate")
    with layout(**more):
        yield gate


def shown_if(there: bool) -> str:
    """What the output of what is `gated` is to be."""
    return "" if there else _ABSENT


def visible_if(there: bool) -> bool | str:
    """`visible` of a component that comes and goes: in the page from the start, hidden where it is not there, for the same
    reason."""
    return there or "hidden"
