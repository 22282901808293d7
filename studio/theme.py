"""Colours, type and measures of the studio in one place: the Gradio theme, the style sheet and the plots read them here.

Every colour is a role with a light and a dark value. Fonts are plain names, taken where installed; nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["DOMAINS", "FONTS", "LAYERS", "MONO", "ROLES", "build_theme", "style_sheet"]

STATIC = Path(__file__).parent / "static"

FONTS = ("Inter", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "Segoe UI", "Helvetica Neue", "sans-serif")
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


def layer_colours(layers: int) -> list[str]:
    """One colour a layer, from light (bottom) to dark (top)."""
    if layers <= 1:
        return [LAYERS[-1]]
    places = [index * (len(LAYERS) - 1) / (layers - 1) for index in range(layers)]
    return [_mix(LAYERS[int(place)], LAYERS[min(int(place) + 1, len(LAYERS) - 1)], place % 1) for place in places]


def _mix(first: str, second: str, share: float) -> str:
    pairs = zip(_rgb(first), _rgb(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def style_sheet() -> str:
    """The roles as CSS variables (`--tm-paper`, …) for light and dark, then the studio's own rules."""
    light = "".join(f"--tm-{name}:{pair[0]};" for name, pair in ROLES.items())
    dark = "".join(f"--tm-{name}:{pair[1]};" for name, pair in ROLES.items())
    rules = (STATIC / "studio.css").read_text(encoding="utf-8")
    # The browser's own parts (ticks, menus, scroll bars) are drawn in the same scheme.
    return f":root {{color-scheme:light;{light}}}\n:root.dark, .dark {{color-scheme:dark;{dark}}}\n{rules}"


def build_theme() -> Any:
    """The Gradio theme made of the roles above, so that Gradio's own widgets look like the rest."""
    import gradio as gr

    def role(name: str) -> str:
        return f"var(--tm-{name})"

    theme = gr.themes.Base(
        font=FONTS,
        font_mono=MONO,
        text_size=gr.themes.Size(xxs="10px", xs="11px", sm="12px", md="14px", lg="14px", xl="20px", xxl="24px"),
        spacing_size=gr.themes.sizes.spacing_md,
        radius_size=gr.themes.Size(xxs="4px", xs="4px", sm="6px", md="8px", lg="8px", xl="10px", xxl="12px"),
    )
    values = {
        "body_background_fill": role("paper"),
        "body_text_color": role("ink"),
        "body_text_color_subdued": role("ink-2"),
        "background_fill_primary": role("card"),
        "background_fill_secondary": role("paper"),
        "border_color_primary": role("line"),
        "border_color_accent": role("accent"),
        "border_color_accent_subdued": role("line"),
        "color_accent": role("accent"),
        "color_accent_soft": role("accent-soft"),
        "link_text_color": role("accent"),
        "link_text_color_hover": role("accent"),
        "link_text_color_visited": role("accent"),
        "link_text_color_active": role("accent"),
        "block_background_fill": role("card"),
        "block_border_color": role("line"),
        "block_border_width": "1px",
        "block_shadow": "none",
        "block_label_background_fill": role("card"),
        "block_label_border_color": role("line"),
        "block_label_text_color": role("ink-2"),
        "block_label_text_weight": "500",
        "block_title_text_color": role("ink-2"),
        "block_title_text_weight": "500",
        "block_title_text_size": "12px",
        "block_info_text_color": role("ink-2"),
        "block_info_text_size": "12px",
        "panel_background_fill": role("card"),
        "panel_border_color": role("line"),
        "input_background_fill": role("card"),
        "input_background_fill_focus": role("card"),
        "input_border_color": role("line"),
        "input_border_color_focus": role("accent"),
        "input_border_width": "1px",
        "input_shadow": "none",
        "input_shadow_focus": "none",
        "input_placeholder_color": role("ink-2"),
        "input_text_size": "14px",
        "button_primary_background_fill": role("accent-fill"),
        "button_primary_background_fill_hover": role("accent-fill-hover"),
        "button_primary_border_color": role("accent-fill"),
        "button_primary_border_color_hover": role("accent-fill-hover"),
        "button_primary_text_color": "#FFFFFF",
        "button_primary_text_color_hover": "#FFFFFF",
        "button_secondary_background_fill": role("card"),
        "button_secondary_background_fill_hover": role("hover"),
        "button_secondary_border_color": role("line"),
        "button_secondary_border_color_hover": role("line"),
        "button_secondary_text_color": role("ink"),
        "button_secondary_text_color_hover": role("ink"),
        "button_border_width": "1px",
        "button_primary_shadow": "none",
        "button_primary_shadow_hover": "none",
        "button_primary_shadow_active": "none",
        "button_secondary_shadow": "none",
        "button_secondary_shadow_hover": "none",
        "button_secondary_shadow_active": "none",
        "button_medium_padding": "7px 14px",
        "button_medium_text_size": "14px",
        "button_medium_text_weight": "500",
        "button_small_padding": "4px 10px",
        "button_small_text_size": "13px",
        "button_small_text_weight": "500",
        "button_medium_radius": "8px",
        "button_small_radius": "8px",
        "checkbox_border_radius": "4px",
        "checkbox_background_color": role("card"),
        "checkbox_background_color_selected": role("accent-fill"),
        "checkbox_border_color": role("line"),
        "checkbox_border_color_focus": role("accent"),
        "checkbox_border_color_selected": role("accent-fill"),
        "checkbox_label_background_fill": role("card"),
        "checkbox_label_background_fill_hover": role("hover"),
        "checkbox_label_background_fill_selected": role("accent-soft"),
        "checkbox_label_border_color": role("line"),
        "checkbox_label_border_color_selected": role("accent"),
        "checkbox_label_text_color": role("ink"),
        "checkbox_label_text_color_selected": role("accent"),
        "checkbox_label_shadow": "none",
        "checkbox_shadow": "none",
        "slider_color": role("accent"),
        "table_border_color": role("line"),
        "table_even_background_fill": role("card"),
        "table_odd_background_fill": role("card"),
        "table_text_color": role("ink"),
        "table_row_focus": role("hover"),
        "error_background_fill": role("card"),
        "error_border_color": role("replaced-ink"),
        "error_text_color": role("replaced-ink"),
        "error_icon_color": role("replaced-ink"),
        "loader_color": role("accent"),
        "stat_background_fill": role("accent-soft"),
        "shadow_drop": "none",
        "shadow_drop_lg": "none",
        "shadow_inset": "none",
        "shadow_spread": "0px",
        "layout_gap": "12px",
        "form_gap_width": "0px",
        "prose_header_text_weight": "600",
    }
    known = {name: value for name, value in values.items() if hasattr(theme, name)}
    # The variables switch by themselves, so the dark value of each is the same reference.
    dark = {name + "_dark": value for name, value in known.items() if hasattr(theme, name + "_dark")}
    return theme.set(**known, **dark)
