"""Giving a plugin away: a copy of its bundle, with or without the user's phrases."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

from engine.files import replacing
from engine.plugins.bundle import CHUNK, MANIFEST, verify_bundle
from engine.plugins.export import entry

__all__ = ["repack"]


def repack(path: Path, output: Path, *, with_phrases: bool = True) -> None:
    """Copy a verified bundle to `output`; `with_phrases=False` leaves phrases.jsonl out. Raises BundleError, StorageError."""
    verify_bundle(path)
    with zipfile.ZipFile(path) as bundle, replacing(output, "the plugin") as temporary:
        files = json.loads(bundle.read(MANIFEST))["files"]
        with zipfile.ZipFile(temporary, "w") as copy:
            if not with_phrases and files.pop("phrases.jsonl", None):
                card = bundle.read("README.md").replace(b"| phrases | in phrases.jsonl |", b"| phrases | left out |")
                files["README.md"] = {"sha256": hashlib.sha256(card).hexdigest(), "bytes": len(card)}
                copy.writestr(entry("README.md"), card)
            for name in files:
                if name in copy.namelist():
                    continue
                with bundle.open(name) as source, copy.open(entry(name), "w", force_zip64=True) as out:
                    while block := source.read(CHUNK):
                        out.write(block)
            copy.writestr(entry(MANIFEST), json.dumps({"files": files}, indent=2, sort_keys=True) + "\n")
