"""How a setting is called on pages."""

from __future__ import annotations

from studio.i18n.translate import mark

LABELS = {"watch": mark("Monitored sentences")}  # of settings whose own name says too little


def label(name: str) -> str:
    """`learning_rate` -> `Learning rate`."""
    words = name.replace("_", " ")
    return LABELS.get(name) or words[:1].upper() + words[1:]
