"""What the lower rooms load: reading samples and rows takes no second of torch."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

from tests.bases import ROOT

LOAD = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({"torch", "transformers", "gradio", "fastapi"} & set(sys.modules))))
"""


@pytest.mark.parametrize("room", ["core", "store", "corpora"])
def test_a_room_below_the_base_loads_without_torch(room: str) -> None:
    folder = ROOT / "engine" / room
    names = [module.name for module in pkgutil.walk_packages([str(folder)], f"engine.{room}.")]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, f"engine.{room}", *(name for name in names if not name.endswith("__main__"))],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == []
