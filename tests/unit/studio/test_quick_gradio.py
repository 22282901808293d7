"""Gradio imported without the stubs that it writes for editors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

CODE = """
import inspect
from pathlib import Path
own, written = inspect.getfile, []
Path.write_text = lambda file, *more, **names: written.append(file)
sources = []
import ast
ast.get_source_segment = lambda *arguments: sources.append(arguments)
import studio.components.quick_gradio
import gradio
assert not sources and not written
assert inspect.getfile is own
assert gradio.Textbox(label="Name").label == "Name"
"""


@pytest.mark.slow
def test_no_source_is_read_and_no_stub_written() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
