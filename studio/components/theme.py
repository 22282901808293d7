"""Colours, type and measures of the studio in one place: the Gradio theme, the style sheet and the plots read them here.

Every colour is a role with a light and a dark value. Fonts are plain names, taken where installed; nothing is fetched.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parents[1] / "static"
SHEETS = ("studio.css", "cat-tools.css")

# Fonts of Latin letters come first: a Chinese font draws quotes, dashes and ellipses as wide as a character, which is right in
# Chinese text only (`font_rules`).
LATIN = ("Inter", "Segoe UI", "Helvetica Neue", "Roboto", "Noto Sans", "Liberation Sans", "Arial")
HAN = ("PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC")
FONTS = (*LATIN, *HAN, "sans-serif")
MONO = ("JetBrains Mono", "DejaVu Sans Mono", "Menlo", "Consolas", "monospace")

# role: (light, dark)
ROLES: dict[str, tuple[str, str]] = {
    "paper": ("#FBFAF7", "#17191D"),
    "card": ("#FFFFFF", "#1F2227"),
    "line": ("#E6E2DA", "#33373E"),
    "hover": ("#F4F1EA", "#282C32"),
    "ink": ("#22252B", "#E9E7E2"),
    "ink-2": ("#656971", "#A3A7AE"),
    "accent": ("#2B4C7E", "#9DBDEB"),
    "accent-fill": ("#2B4C7E", "#3B659F"),
    "accent-fill-hover": ("#223E68", "#4874B2"),
    "accent-soft": ("#E8EFF8", "#26344A"),
    "change": ("#FCEBBF", "#4B3C13"),
    "change-line": ("#D49A17", "#D8A73D"),
    "replaced": ("#F4E2DF", "#452A2B"),
    "replaced-ink": ("#AE3E38", "#E79A90"),
    "tag": ("#EFECE5", "#2D3138"),
    "done": ("#DFEFE6", "#1F3B2E"),
    "done-ink": ("#2F7350", "#8CCBAA"),
    "track": ("#E4E0D8", "#3A3E45"),
}

# One hue from light to dark, for as many layers as there are; and Okabe and Ito's colours for domains.
LAYERS = ("#DCE5F2", "#B8CAE5", "#8FA9D3", "#6385BB", "#42679F", "#2B4C7E")
DOMAINS = ("#009E73", "#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#C8C3B8")


# What of Gradio's theme takes which role, length or weight.
THEME: dict[str, str] = {
    "paper": "body_background_fill background_fill_secondary",
    "ink": (
        "body_text_color button_secondary_text_color button_secondary_text_color_hover checkbox_label_text_color "
        "table_text_color"
    ),
    "ink-2": (
        "body_text_color_subdued block_label_text_color block_title_text_color block_info_text_color "
        "input_placeholder_color"
    ),
    "card": (
        "background_fill_primary block_background_fill block_label_background_fill panel_background_fill "
        "input_background_fill input_background_fill_focus button_secondary_background_fill checkbox_background_color "
        "checkbox_label_background_fill table_even_background_fill table_odd_background_fill error_background_fill"
    ),
    "line": (
        "border_color_primary border_color_accent_subdued block_border_color block_label_border_color panel_border_color "
        "input_border_color button_secondary_border_color button_secondary_border_color_hover checkbox_border_color "
        "checkbox_label_border_color table_border_color"
    ),
    "accent": (
        "border_color_accent color_accent link_text_color link_text_color_hover link_text_color_visited "
        "link_text_color_active input_border_color_focus checkbox_border_color_focus checkbox_label_border_color_selected "
        "checkbox_label_text_color_selected slider_color loader_color"
    ),
    "accent-soft": "color_accent_soft checkbox_label_background_fill_selected stat_background_fill",
    "1px": "block_border_width input_border_width button_border_width",
    "none": (
        "block_shadow input_shadow input_shadow_focus button_primary_shadow button_primary_shadow_hover "
        "button_primary_shadow_active button_secondary_shadow button_secondary_shadow_hover "
        "button_secondary_shadow_active checkbox_label_shadow checkbox_shadow shadow_drop shadow_drop_lg shadow_inset"
    ),
    "500": "block_label_text_weight block_title_text_weight button_medium_text_weight button_small_text_weight",
    "12px": "block_title_text_size block_info_text_size layout_gap",
    "14px": "input_text_size button_medium_text_size",
    "accent-fill": (
        "button_primary_background_fill button_primary_border_color checkbox_background_color_selected "
        "checkbox_border_color_selected"
    ),
    "accent-fill-hover": "button_primary_background_fill_hover button_primary_border_color_hover",
    "#FFFFFF": "button_primary_text_color button_primary_text_color_hover",
    "hover": "button_secondary_background_fill_hover checkbox_label_background_fill_hover table_row_focus",
    "7px 14px": "button_medium_padding",
    "4px 10px": "button_small_padding",
    "13px": "button_small_text_size",
    "8px": "button_medium_radius button_small_radius",
    "4px": "checkbox_border_radius",
    "replaced-ink": "error_border_color error_text_color error_icon_color",
    "0px": "shadow_spread form_gap_width",
    "600": "prose_header_text_weight",
}


def layer_colours(layers: int) -> list[str]:
    """One colour a layer, from light (bottom) to dark (top)."""
    if layers <= 1:
        return [LAYERS[-1]]
    positions = [index * (len(LAYERS) - 1) / (layers - 1) for index in range(layers)]
    return [
        _mix(LAYERS[int(position)], LAYERS[min(int(position) + 1, len(LAYERS) - 1)], position % 1)
        for position in positions
    ]


def _mix(first: str, second: str, share: float) -> str:
    pairs = zip(_rgb(first), _rgb(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[position : position + 2], 16) for position in (1, 3, 5))


def colour_variables() -> tuple[str, str]:
    """The roles as CSS variables (`--tm-paper`, …): the light values, and the dark ones."""
    light, dark = ("".join(f"--tm-{name}:{pair[side]};" for name, pair in ROLES.items()) for side in (0, 1))
    return light, dark


def font_rules() -> str:
    """Which fonts a text takes: those of Chinese first in Chinese, those of Latin letters first in everything else."""
    han = _families((*HAN, *LATIN, "sans-serif"))
    return (
        f":root {{--font:{_families(FONTS)};}}\n:root:lang(zh), .dark:lang(zh), [lang]:lang(zh) {{--font:{han};}}\n"
        f"[lang]:not(:lang(zh)) {{--font:{_families(FONTS)};}}\n[lang] {{font-family:var(--font);}}"
    )


def _families(names: tuple[str, ...]) -> str:
    return ",".join(f'"{name}"' if " " in name else name for name in names)


def style_sheet() -> str:
    """The roles for light and dark, then the studio's own rules."""
    light, dark = colour_variables()
    rules = "".join((STATIC / name).read_text(encoding="utf-8") for name in SHEETS)
    # The browser's own parts (ticks, menus, scroll bars) are drawn in the same scheme.
    schemes = f":root {{color-scheme:light;{light}}}\n:root.dark, .dark {{color-scheme:dark;{dark}}}"
    return f"{schemes}\n{font_rules()}\n{rules}"


@cache
def plain_style() -> str:
    """Roles and fonts for pages without Gradio, which follow the reader's machine between light and dark."""
    light, dark = colour_variables()
    return f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n{font_rules()}"


def build_theme() -> Any:
    """The Gradio theme made of the roles above, so that Gradio's own widgets look like the rest."""
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
        for value, names in THEME.items()
        for name in names.split()
        if hasattr(theme, name)
    }
    # The variables switch by themselves, so the dark value of each is the same reference.
    dark = {name + "_dark": value for name, value in values.items() if hasattr(theme, name + "_dark")}
    return theme.set(**values, **dark)
