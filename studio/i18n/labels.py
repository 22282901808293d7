"""Labels for settings on pages."""

from __future__ import annotations

from studio.i18n.translate import mark

LABELS = {  # for settings whose name is not clear enough; with a class name if other classes use the same name
    "DensityRatioConfig.order": mark("N-gram order"),
    "anti": mark("Anti-expert data"),
    "base_url": mark("Base URL"),
    "full_speed": mark("Learning rate factor (full matrices)"),
    "init": mark("Initialization"),
    "lora_alpha": mark("LoRA alpha"),
    "lora_dropout": mark("LoRA dropout"),
    "max_chars": mark("Maximum characters"),
    "max_line_chars": mark("Maximum line length"),
    "min_chars": mark("Minimum characters"),
    "speed": mark("Learning rate factor"),
    "start": mark("Adapter initialization"),
    "watch": mark("Monitored sentences"),
    "which": mark("Weights to tune"),
}


def label(name: str, cls: type | None = None) -> str:
    """The label of a setting: `learning_rate` -> `Learning rate`; `cls`: the class to which it belongs."""
    words, qualified = name.replace("_", " "), f"{cls.__name__}.{name}" if cls else ""
    return LABELS.get(qualified) or LABELS.get(name) or words[:1].upper() + words[1:]
