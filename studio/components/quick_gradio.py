"""Faster import of Gradio: this module must be imported before any other module that imports Gradio.

For each component class, Gradio reads its source and writes a stub for editors into its installation folder; classes without a
source file are skipped. During this import, every class appears to have none.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

WRITER = "gradio.component_meta"


def import_gradio() -> None:
    original = inspect.getfile

    def file_of(target: Any) -> str:
        if sys._getframe(1).f_globals.get("__name__") == WRITER:
            raise OSError  # as for a class defined interactively
        return original(target)

    inspect.getfile = file_of  # type: ignore[assignment]
    try:
        importlib.import_module("gradio")
    finally:
        inspect.getfile = original


import_gradio()
