"""Command lines and a worker that want one workspace at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.workflows.customize.pipeline import customize
from engine.workflows.customize.request import CustomizeRequest
from engine.workflows.customize.steps import workspace_lock
from tests.bases import EN_ZH

HOLD = """
import sys
from pathlib import Path
from engine.errors import InputError
from engine.workflows.customize.steps import workspace_lock
print("ready", flush=True)
sys.stdin.readline()
try:
    with workspace_lock(Path(sys.argv[1])):
        print("inside", flush=True)
        sys.stdin.readline()
except InputError as error:
    print(error, flush=True)
"""


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_one_of_several_works_and_its_death_leaves_the_workspace_free(tmp_path: Path) -> None:
    workspace, samples = tmp_path / "workspace", tmp_path / "samples.txt"
    samples.write_text("雨停了。\n", encoding="utf-8")
    request = CustomizeRequest(
        base=str(EN_ZH), source="en", target="zh", samples=(str(samples),), method="lhuc", output=str(tmp_path / "x.zip")
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", HOLD, workspace], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    try:
        assert [read(process) for process in processes] == ["ready"] * 3
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        lines = [read(process) for process in processes]
        refusal = f"Another process is using {workspace}. Wait for it, or choose another output."
        assert sorted(lines) == sorted(["inside", refusal, refusal])

        with pytest.raises(InputError, match="Another process is using"):
            customize(request, workspace)
        assert [file.name for file in workspace.iterdir()] == [".lock"]

        inside = processes[lines.index("inside")]
        inside.kill()
        inside.wait()
        with workspace_lock(workspace):
            pass
    finally:
        for process in processes:
            process.kill()
            process.communicate()
