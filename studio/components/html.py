"""Small pieces of HTML, always escaped."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from studio.components.templating import piece


def esc(text: object) -> str:
    """Text escaped for HTML, including quoted attributes."""
    return html.escape(str(text), quote=True)


RIGHT_TO_LEFT = ("ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi")


def lang_attribute(code: str, *, auto: bool = False) -> str:
    """The attribute ` lang="zh"`, from which the browser selects glyphs and the style sheet the size; empty without a code.

    Right-to-left languages also get a `dir` attribute; with `auto`, for text in any language, the browser decides by its content.
    """
    primary = code.replace("_", "-").split("-", maxsplit=1)[0].lower()
    direction = "auto" if auto else "rtl" if primary in RIGHT_TO_LEFT else ""
    return (f' lang="{esc(code)}"' if code else "") + (f' dir="{direction}"' if direction else "")


def parted(text: str, span: Sequence[int] | None) -> tuple[str, str, str]:
    """The text before a span, the span, and the text after it; without a span, all text is in the first part."""
    start, end = span or (len(text), len(text))
    return text[:start], text[start:end], text[end:]


def tag(text: object, kind: str = "") -> str:
    """A small rounded label; `kind` is "", "accent", "done" or "bad"."""
    return piece("tag", text, kind)


def card(body: str) -> str:
    """A white card around safe HTML."""
    return piece("card", body)


def empty(title: str, text: str = "", more: str = "") -> str:
    """The placeholder of an empty page: a title, a sentence and the next step (`more` is safe HTML)."""
    return piece("empty", title, text, more)


def link_line(url: str, words: str) -> str:
    """The link to the next step on an empty page."""
    return piece("link_line", url, words)


def link_button(url: str, words: str) -> str:
    """A link styled as the page's primary button."""
    return piece("link_button", url, words)


def note(text: str, *, bad: bool = False) -> str:
    """A warning sentence with a coloured edge; `bad` for a failure."""
    return piece("note", text, bad)


def bars(counts: Sequence[int], names: Sequence[str], unit: str) -> str:
    """A small column chart as SVG in the style sheet's colours; the value of each column is shown on hover.

    `names` label the columns; if there are many, only every n-th label is shown. `unit` names what is counted.
    """
    width, height, gap = 100.0, 96.0, 1.2
    step, highest = width / max(1, len(counts)), max([*counts, 1])
    columns = [
        {
            "name": name,
            "count": count,
            "left": f"{index * step:.2f}",
            "step": f"{step:.2f}",
            "x": f"{index * step + gap / 2:.2f}",
            "y": f"{height - height * count / highest:.2f}",
            "width": f"{step - gap:.2f}",
            "height": f"{height * count / highest:.2f}",
        }
        for index, (count, name) in enumerate(zip(counts, names, strict=True))
    ]
    every = 1 + len(counts) // 11
    return piece("bars", columns, [name if index % every == 0 else "" for index, name in enumerate(names)], unit)


def mid_sentence(words: str) -> str:
    """Lower-case the first letter for use within a sentence: `Choosing settings` -> `choosing settings`; names like LoRA stay."""
    named = not words.partition(" ")[0][1:].islower()
    return words if named else words[:1].lower() + words[1:]


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separators; an en dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def size(count: int | None) -> str:
    """A number of bytes in a readable unit: `38 MB`; an en dash for None."""
    if count is None:
        return "–"
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= divisor:
            value = count / divisor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{count} B"


def html_block(value: str = "", *, classes: str = "", script: str | None = None, **more: Any) -> Any:
    """A `gr.HTML` without Gradio's default typography. `script` runs once; it should delegate events to `element`."""
    import gradio as gr

    return gr.HTML(
        value, apply_default_css=False, padding=False, container=False, js_on_load=script, elem_classes=classes or None, **more
    )


def hidden_text(value: str = "") -> Any:
    """A hidden text that passes values between a page's events and scripts. The style sheet hides it as well, because on a busy
    machine Gradio 6 may show it when its container appears.
    """
    import gradio as gr

    return gr.Textbox(value, visible="hidden", elem_classes="tm-unseen")


def card_title(words: str) -> Any:
    """The title of a card laid out by Gradio; `words` is a message."""
    return html_block(piece("card_title", words), classes="tm-card-title")


def quiet_line(words: str) -> Any:
    """A line of small grey text; `words` is a message."""
    return html_block(piece("quiet_line", words))


_ABSENT = '<i class="tm-absent"></i>'


@contextlib.contextmanager
def toggled(layout: Callable[..., Any], **more: Any) -> Iterator[Any]:
    """A row or column that can be shown and hidden: hidden until the yielded gate is set to `toggle_value(True)`.

    It is always laid out, and hidden by the style sheet. With Gradio's `visible=False`, it would be loaded only when it is to
    appear, which Gradio sometimes misses while other events fill the page.
    """
    gate = toggle_of_next()
    with layout(**more):
        yield gate


def toggle_of_next() -> Any:
    """A gate that hides the component laid out next until it is set to `toggle_value(True)`. On a busy machine Gradio 6 loses a
    change of `visible` that arrives while the component is being mounted.
    """
    return html_block(_ABSENT, classes="tm-gate")


def toggle_value(visible: bool) -> str:
    """The value of a gate that shows (`visible`) or hides its component."""
    return "" if visible else _ABSENT


def visible_if(visible: bool) -> bool | str:
    """The `visible` value of a component that can be shown and hidden: it is always mounted, for the same reason as `toggled`."""
    return visible or "hidden"
