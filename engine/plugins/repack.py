"""Copies of bundles: without the user's texts, to be given away; or with some files and settings changed."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.files import replacing
from engine.plugins.bundle import CHUNK, CONFIG, MANIFEST, verify_bundle
from engine.plugins.export import TEXTS, entry

__all__ = ["amend", "repack"]


def repack(path: Path, output: Path, *, with_phrases: bool = True) -> None:
    """Copy a verified bundle to `output`; `with_phrases=False` leaves the user's texts out. Raises BundleError, StorageError."""
    amend(path, output, without=() if with_phrases else TEXTS)


def amend(
    path: Path,
    output: Path,
    *,
    card: Mapping[str, Any] | None = None,
    files: Mapping[str, Path] | None = None,
    without: Collection[str] = (),
) -> None:
    """Copy a verified bundle with entries of its adapter_config.json replaced, files added or replaced, and some left out.

    `output` may be `path`. Raises BundleError, StorageError.
    """
    verify_bundle(path)
    with zipfile.ZipFile(path) as bundle, replacing(output, "the plugin") as temporary:
        manifest = json.loads(bundle.read(MANIFEST))["files"]
        texts: dict[str, bytes] = {}
        if card:
            about = {**json.loads(bundle.read(CONFIG)), **card}
            texts[CONFIG] = (json.dumps(about, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode("utf-8")
        if "phrases.jsonl" in without and "phrases.jsonl" in manifest:
            page = bundle.read("README.md")
            texts["README.md"] = page.replace(b"| phrases | in phrases.jsonl |", b"| phrases | left out |")
        manifest = {name: about for name, about in manifest.items() if name not in without}
        with zipfile.ZipFile(temporary, "w") as copy:
            for name, data in texts.items():
                copy.writestr(entry(name), data)
                manifest[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, file in (files or {}).items():
                with file.open("rb") as source:
                    manifest[name] = copy_from(source, copy, name)
            for name in manifest:
                if name not in copy.namelist():
                    with bundle.open(name) as source:
                        copy_from(source, copy, name)
            copy.writestr(entry(MANIFEST), json.dumps({"files": manifest}, indent=2, sort_keys=True) + "\n")


def copy_from(source: Any, copy: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """Stream a file into the bundle; returns its line in the manifest."""
    digest, count = hashlib.sha256(), 0
    with copy.open(entry(name), "w", force_zip64=True) as out:
        while block := source.read(CHUNK):
            digest.update(block)
            count += len(block)
            out.write(block)
    return {"sha256": digest.hexdigest(), "bytes": count}
