"""Small pieces of HTML, always escaped. Whatever a user typed or uploaded passes through `esc`."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from studio.components.templating import piece


def esc(text: object) -> str:
    """Text made safe for HTML, inside quoted attributes too."""
    return html.escape(str(text), quote=True)


RIGHT_TO_LEFT = ("ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi")


def lang_attribute(code: str, *, auto: bool = False) -> str:
    """` lang="zh"`, so that the browser takes the right glyphs and the style sheet the right size; empty for none.

    Texts of languages that are written from right to left are marked so; with `auto`, for what may be of any language, the
    browser looks at the text itself.
    """
    bare = code.replace("_", "-").split("-", maxsplit=1)[0].lower()
    way = "auto" if auto else "rtl" if bare in RIGHT_TO_LEFT else ""
    return (f' lang="{esc(code)}"' if code else "") + (f' dir="{way}"' if way else "")


def parted(text: str, span: Sequence[int] | None) -> tuple[str, str, str]:
    """The text before a span, the characters of the span, and the text after it; without a span, all of it is before."""
    start, end = span or (len(text), len(text))
    return text[:start], text[start:end], text[end:]


def tag(text: object, kind: str = "") -> str:
    """A small rounded label; `kind` is "", "accent", "done" or "bad"."""
    return piece("tag", text, kind)


def card(body: str) -> str:
    """A white card around safe HTML."""
    return piece("card", body)


def empty(title: str, text: str = "", more: str = "") -> str:
    """What a page shows while there is nothing: one sentence and the next step (`more` is safe HTML)."""
    return piece("empty", title, text, more)


def way(url: str, words: str) -> str:
    """The next step of an empty page: a link below its sentence."""
    return piece("way", url, words)


def link_button(url: str, words: str) -> str:
    """A link that looks like the page's one filled button."""
    return piece("link_button", url, words)


def note(text: str, *, bad: bool = False) -> str:
    """A warning sentence with a coloured edge; `bad` for a failure."""
    return piece("note", text, bad)


def bars(counts: Sequence[int], names: Sequence[str], unit: str) -> str:
    """A small column chart as SVG, in the style sheet's colours; the figure of each column shows on hover.

    `names` stand under the columns, every second one where there are many; `unit` is what is counted.
    """
    width, height, gap = 100.0, 96.0, 1.2
    step, most = width / max(1, len(counts)), max([*counts, 1])
    columns = [
        {
            "name": name,
            "count": count,
            "left": f"{index * step:.2f}",
            "step": f"{step:.2f}",
            "x": f"{index * step + gap / 2:.2f}",
            "y": f"{height - height * count / most:.2f}",
            "width": f"{step - gap:.2f}",
            "height": f"{height * count / most:.2f}",
        }
        for index, (count, name) in enumerate(zip(counts, names, strict=True))
    ]
    every = 1 + len(counts) // 11
    return piece("bars", columns, [name if index % every == 0 else "" for index, name in enumerate(names)], unit)


def mid_sentence(words: str) -> str:
    """Words as they stand within a sentence: `Choosing settings` -> `choosing settings`; a name, as LoRA, stays as it is."""
    named = not words.partition(" ")[0][1:].islower()
    return words if named else words[:1].lower() + words[1:]


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


def html_block(value: str = "", *, classes: str = "", script: str | None = None, **more: Any) -> Any:
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


def hidden_text(value: str = "") -> Any:
    """A text that the events and scripts of a page pass on and nobody sees. The style sheet hides it too: where what it is laid out
    in appears on a busy machine, Gradio 6 may show it.
    """
    import gradio as gr

    return gr.Textbox(value, visible="hidden", elem_classes="tm-unseen")


def card_title(words: str) -> Any:
    """The title of a card that Gradio lays out; `words` are a message."""
    return html_block(piece("card_title", words), classes="tm-card-title")


def quiet_line(words: str) -> Any:
    """A line in small grey letters; `words` are a message."""
    return html_block(piece("quiet_line", words))


_ABSENT = '<i class="tm-absent"></i>'


@contextlib.contextmanager
def toggled(layout: Callable[..., Any], **more: Any) -> Iterator[Any]:
    """A row or column of the page that comes and goes: hidden until its output is `toggle_value(True)`.

    It is laid out from the start, and the style sheet hides it. What Gradio's own `visible=False` leaves out is loaded when
    it is to appear, and now and then Gradio misses that while other events fill the page.
    """
    gate = toggle_of_next()
    with layout(**more):
        yield gate


def toggle_of_next() -> Any:
    """What hides the component that is laid out next, until its output is `toggle_value(True)`. On a busy machine Gradio 6 loses
    a change of `visible` that comes while the component is put into the page.
    """
    return html_block(_ABSENT, classes="tm-gate")


def toggle_value(there: bool) -> str:
    """What the output of what is `toggled` is to be."""
    return "" if there else _ABSENT


def visible_if(there: bool) -> bool | str:
    """`visible` of a component that comes and goes: in the page from the start, hidden where it is not there, for the same
    reason."""
    return there or "hidden"
