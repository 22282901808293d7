"""Paths in a workspace that several runs share."""

from __future__ import annotations

from pathlib import Path


def run_folder(workspace: Path, number: int) -> Path:
    """The folder of files that belong to a single run."""
    return workspace / "runs" / str(number)


def latest_file(workspace: Path, name: str) -> Path:
    """The newest file of that name left by a run, such as `method/phrase_pairs.jsonl`; else its path in the workspace."""
    results = sorted(workspace.glob(f"runs/*/{name}"), key=lambda path: path.stat().st_mtime)
    return results[-1] if results else workspace / name
