"""Commands in processes of their own and a worker, at once on one data folder: nothing is lost, and all results are there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.core.settings import Settings
from engine.decoding.translate import translate
from engine.jobs import enqueue
from engine.plugins import Plugin
from engine.store import Store
from tests.bases import SENTENCES
from tests.conftest import ROOT, SHORT, Ran

SOURCES = [source for source, _ in SENTENCES]
FAULTS = ("Traceback", "OperationalError", "The store at", "The database at", " ERROR ")


def test_commands_and_a_worker_share_a_data_folder(
    home: Path, command: Callable[..., Ran], tailormt: Callable[..., Ran], request_for: Callable[..., Any], tiny: Path,
    sample: Path, bundle: Path, base: Any, tmp_path: Path,
) -> None:  # fmt: skip
    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    project = store.projects.create("Style", "en", "zh", str(tiny))
    request = request_for(tmp_path / "x.zip")
    options = {name: getattr(request, name) for name in ("phrase_options", "method_options", "training_options", "budget")}
    job = enqueue(store, "customize", {**options, "samples": [str(sample)], "name": "Job"}, project_id=project.id)
    (tmp_path / "texts.txt").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")

    direction = ("--base", tiny, "--source", "en", "--target", "zh")
    output, workspace = tmp_path / "made.zip", tmp_path / "workspace"
    customize = ("customize", *direction, "--samples", sample, "--budget", "quick", *SHORT, "--workspace", workspace, "-o", output)
    commands = [
        customize,
        customize,
        ("translate", *direction, "--plugin", bundle, tmp_path / "texts.txt", "-o", tmp_path / "translated.txt"),
        ("token", "create", "One"),
        ("token", "create", "Two"),
    ]
    modules = [("engine.jobs.worker", "--once"), *(("engine.cli", *map(str, arguments)) for arguments in commands)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", *module], cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for module in modules
    ]
    try:
        outputs = [process.communicate(timeout=900) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    errors = [err for _, err in outputs]
    assert not any(fault in err for err in errors for fault in FAULTS), errors
    worker, first, second, *others = codes
    assert (worker, others) == (0, [0, 0, 0]), errors

    # Of two that want one workspace one works; the other is told, and takes what is there as soon as it is free.
    assert sorted((first, second)) in ([0, 2], [0, 0]), errors[1:3]
    for code, err in zip((first, second), errors[1:3], strict=True):
        assert code == 0 or f"Another process is using {workspace}" in err
    plugin_weights = weights(output)
    assert command(*customize).code == 0
    assert weights(output) == plugin_weights, "the same, from the steps that are finished"

    ended = store.jobs.get(job.id)
    assert (ended.state, ended.attempt) == ("succeeded", 1), ended.error
    (row,) = store.plugins.list(project.id)
    assert row.job_id == job.id
    assert set(weights(Path(row.path))) == set(plugin_weights)
    lines = (tmp_path / "translated.txt").read_text(encoding="utf-8").splitlines()
    assert lines == translate(base, SOURCES, Plugin.load(bundle, base, cache=tmp_path / "cache"))
    assert {token.name for token in store.tokens.list()} == {"One", "Two"}
    assert (ran := tailormt("doctor")).code == 0, ran.out


def weights(bundle: Path) -> dict[str, bytes]:
    """The tensors of a bundle, file by file."""
    with zipfile.ZipFile(bundle) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name.endswith(".safetensors")}
