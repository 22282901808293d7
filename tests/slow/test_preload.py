"""A process that jobs are forked from must not have touched what a fork cannot use: a GPU, or threads."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

SCRIPT = """
import sys, threading
import torch
def refused(*arguments, **settings):
    raise SystemExit("the GPU was looked for")
for name in ("is_available", "device_count", "init", "_lazy_init"):
    setattr(torch.cuda, name, refused)
import engine.jobs.preload
missing = [name for name in engine.jobs.preload.MODULES if name not in sys.modules]
print(missing, "transformers.models.marian.modeling_marian" in sys.modules, threading.active_count())
"""


def test_what_jobs_are_forked_from_loads_its_libraries_and_touches_no_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)
    assert done.stdout.splitlines() == ["[] True 1"], done.stderr
