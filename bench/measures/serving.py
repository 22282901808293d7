"""One base and a thousand plugins on disk: how soon it answers, and how much memory it holds."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measures.row import Row
from measures.setup import ROOT, Setup

__all__ = ["thousand_plugins"]

DIFFERENT = 40  # bundles of their own; the others are further names of them
KEPT = 8  # plugins held in memory, the setting `loaded_plugins`


def thousand_plugins(setup: Setup) -> list[Row]:
    """Row 8: a process that opens the store, loads the base and translates; then plugins that it never saw, one after another."""
    from engine.store import Store

    count, different = setup.size(1_000, 6), 6 if setup.small else DIFFERENT
    home = setup.scratch / "home"
    (home / "bundles").mkdir(parents=True)
    store = Store(f"sqlite:///{home / 'speed.db'}")
    project = store.projects.create("speed", setup.source, setup.target, setup.base_path)
    bundles = write_bundles(setup, home / "bundles", different)
    for number in range(count):
        path = home / "bundles" / f"plugin-{number:04}.zip"
        if not path.exists():
            os.link(bundles[number % different], path)
        store.plugins.create(
            project.id, f"plugin {number}", method="memory_adapter", path=str(path), base_fingerprint=setup.base.fingerprint()
        )
    selected = 2 if setup.small else KEPT
    runs = []
    for _ in range(setup.rounds):
        for folder in (home / "unpacked").glob("*"):
            remove(folder)
        command = [
            sys.executable,
            str(Path(__file__).with_name("cold_start.py")),
            str(time.time()),
            str(home),
            str(selected),
            str(different),
        ]
        command += [setup.base_path, setup.source, setup.target]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    grown = middle["at the end"] - middle["after twice as many as are kept"]
    return [
        Row(
            "thousand_plugins", f"one base, {count:,} plugins on disk: from the process's start to the first translation",
            middle["start"], 5.0, unit="s", figures=middle,
            note=f"by the clock, imports of torch and transformers in it; {middle['start cpu']:.1f} s of processor time",
        ),
        Row(
            "thousand_plugins", "first sentence with a plugin that was never opened, 500 phrases a layer",
            1000 * middle["cold"], 500,
            unit="ms", note=f"median of {middle['loaded']:.0f} by the clock; {1000 * middle['cold cpu']:.0f} ms of processor time; "
            f"slowest {1000 * middle['slowest']:.0f} ms", figures=middle,
        ),
        Row(
            "thousand_plugins", f"memory gained from plugin {2 * selected} to {different}, loaded_plugins = {selected}",
            grown, 64, unit="MiB", note=f"{middle['after base']:.0f} MiB with the base alone, {middle['at the end']:.0f} at the "
            f"end; {middle['held']:.0f} held", figures=middle,
        ),
    ]  # fmt: skip


def write_bundles(setup: Setup, folder: Path, count: int) -> list[Path]:
    """Bundles that differ in a weight, as `quick` makes them."""
    import torch

    from engine.methods.memory_adapter.config import MemoryAdapterConfig
    from engine.plugins.export import BundleContent, export_bundle

    memory = setup.memory(setup.size(500, 50))
    method, module = setup.module("memory_adapter", memory, ready=False)
    results: list[Path] = []
    for number in range(count):
        path = folder / f"plugin-{number:04}.zip"
        for name, parameter in module.named_parameters():
            if name.endswith("scale"):
                parameter.data.fill_(torch.tensor(number * 1e-6))
        provenance: dict[str, Any] = {"sentences": 0}
        export_bundle(
            path,
            BundleContent(
                name=f"plugin {number}",
                base=setup.base,
                method=method,
                config=MemoryAdapterConfig(),
                module=module,
                files={"memory.safetensors": memory.path},
                provenance=provenance,
            ),
        )
        results.append(path)
    return results


def remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
