"""Colours and fonts of the studio from theme.toml, for the Gradio theme, the style sheet and the plots."""

from __future__ import annotations

import hashlib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parents[1] / "static"
SHEETS = ("studio.css", "cat-tools.css")

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ROLES: dict[str, tuple[str, str]] = {role: (light, dark) for role, (light, dark) in _FILE["roles"].items()}
LAYERS, DOMAINS = (tuple[str, ...](_FILE["colours"][name]) for name in ("layers", "domains"))
LATIN, HAN, MONO = (tuple[str, ...](_FILE["fonts"][name]) for name in ("latin", "han", "mono"))
FONTS = (*LATIN, *HAN, "sans-serif")


def layer_colours(layers: int) -> list[str]:
    """One colour per layer, from light (bottom) to dark (top)."""
    if layers <= 1:
        return [LAYERS[-1]]
    positions = [index * (len(LAYERS) - 1) / (layers - 1) for index in range(layers)]
    return [_mix(LAYERS[int(position)], LAYERS[min(int(position) + 1, len(LAYERS) - 1)], position % 1) for position in positions]


def _mix(first: str, second: str, share: float) -> str:
    pairs = zip(_rgb(first), _rgb(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[position : position + 2], 16) for position in (1, 3, 5))


def colour_variables() -> tuple[str, str]:
    """The colour roles as CSS variables (`--tm-paper`, …): light values and dark values."""
    light, dark = ("".join(f"--tm-{name}:{pair[side]};" for name, pair in ROLES.items()) for side in (0, 1))
    return light, dark


def font_rules() -> str:
    """CSS font rules: Chinese fonts come first for Chinese text, Latin fonts for all other text."""
    han = _families((*HAN, *LATIN, "sans-serif"))
    return (
        f":root:root {{--font:{_families(FONTS)};}}\n"  # twice: Gradio's theme, which comes later, sets it too
        f":root:root:lang(zh), .dark.dark.dark:lang(zh), [lang]:lang(zh) {{--font:{han};}}\n"
        f"[lang]:not(:lang(zh)) {{--font:{_families(FONTS)};}}\n[lang] {{font-family:var(--font);}}"
    )


def _families(names: tuple[str, ...]) -> str:
    return ",".join(f'"{name}"' if " " in name else name for name in names)


def style_sheet() -> str:
    """The colour variables for light and dark, then the studio's rules."""
    light, dark = colour_variables()
    rules = "".join((STATIC / name).read_text(encoding="utf-8") for name in SHEETS)
    # Makes the browser draw its native controls (tick boxes, menus, scroll bars) in the same scheme.
    schemes = f":root {{color-scheme:light;{light}}}\n:root.dark, .dark {{color-scheme:dark;{dark}}}"
    return f"{schemes}\n{font_rules()}\n{rules}"


@cache
def page_style() -> tuple[str, bytes]:
    """The address and the content of the pages' style sheet; the address changes with the content.

    The rules are included twice, the second time with the specificity that Gradio gives an application's style sheet, so that
    they override those of its components. Passed to Gradio, the sheet would be resent and reapplied on each page change.
    """
    rules = style_sheet()
    nested = re.sub(r"(?m)^([ \t]*)\.dark ", r"\1.dark & ", rules)
    sheet = f"{rules}\n.gradio-container.gradio-container .contain {{\n{nested}\n}}\n".encode()
    return f"/tm/studio-{hashlib.sha256(sheet).hexdigest()[:12]}.css", sheet


def style_link() -> str:
    """The `<link>` element for the style sheet in a page's head."""
    return f'<link rel="stylesheet" href="{page_style()[0]}">'


@cache
def plain_style() -> str:
    """Colour variables and fonts for pages without Gradio, which follow the system's light or dark setting."""
    light, dark = colour_variables()
    return f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n{font_rules()}"


def build_theme() -> Any:
    """The Gradio theme made from the colour roles, so that Gradio's widgets match the rest of the studio."""
    import gradio as gr

    theme = gr.themes.Base(
        font=FONTS,
        font_mono=MONO,
        text_size=gr.themes.Size(xxs="10px", xs="11px", sm="12px", md="14px", lg="14px", xl="20px", xxl="24px"),
        spacing_size=gr.themes.sizes.spacing_md,
        radius_size=gr.themes.Size(xxs="4px", xs="4px", sm="6px", md="8px", lg="8px", xl="10px", xxl="12px"),
    )
    values = {
        name: f"var(--tm-{value})" if value in ROLES else value
        for value, names in _FILE["gradio"].items()
        for name in names
        if hasattr(theme, name)
    }
    # The CSS variables switch between light and dark, so both values are the same reference.
    dark = {name + "_dark": value for name, value in values.items() if hasattr(theme, name + "_dark")}
    return theme.set(**values, **dark)
