"""Where things lie in a workspace that several runs share."""

from __future__ import annotations

from pathlib import Path

__all__ = ["latest_file", "run_folder"]


def run_folder(workspace: Path, number: int) -> Path:
    """The folder of what belongs to one run alone."""
    return workspace / "runs" / str(number)


def latest_file(workspace: Path, name: str) -> Path:
    """The newest file of that name that a run left behind, as `method/phrase_pairs.jsonl`; else its place in the workspace."""
    found = sorted(workspace.glob(f"runs/*/{name}"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else workspace / name
