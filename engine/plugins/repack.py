"""Copies of bundles: without the user's texts, for sharing, or with some files and settings changed."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.core.atomic_files import atomic_write
from engine.methods import get_method
from engine.plugins.bundle import CONFIG, MANIFEST, PARTS, open_bundle, read_bundle_card, verify_bundle
from engine.plugins.export import TEXTS, add, add_manifest, check_without_texts, texts_line


def repack(path: Path, output: Path, *, with_phrases: bool = True, name: str = "") -> None:
    """Copy a verified bundle to `output`, under another `name` if given; `with_phrases=False` omits the user's texts.

    Raises OptionError if the method needs the texts, BundleError, StorageError.
    """
    bundle_card = read_bundle_card(path)
    card = {"name": name} if name and name != bundle_card["name"] else None
    if with_phrases:
        amend(path, output, card=card)
        return
    check_without_texts(get_method(bundle_card["method"]))
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder, open_bundle(path) as bundle:
        parts = {}
        for part in (part for part in PARTS if part in bundle_card["files"]):
            repack(Path(bundle.extract(part, folder)), Path(folder) / f"without-{part}", with_phrases=False)
            parts[part] = Path(folder) / f"without-{part}"
        amend(path, output, card=card, files=parts, without=TEXTS)


def amend(
    path: Path,
    output: Path,
    *,
    card: Mapping[str, Any] | None = None,
    files: Mapping[str, Path] | None = None,
    without: Collection[str] = (),
) -> None:
    """Copy a verified bundle with changed adapter_config.json entries, with files added or replaced, and some omitted.

    `output` may be `path`. Raises BundleError, StorageError.
    """
    verify_bundle(path)
    with zipfile.ZipFile(path) as bundle, atomic_write(output, "the plugin") as temporary:
        manifest = json.loads(bundle.read(MANIFEST))["files"]
        texts: dict[str, bytes] = {}
        if card:
            adapter_config = {**json.loads(bundle.read(CONFIG)), **card}
            texts[CONFIG] = (json.dumps(adapter_config, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode("utf-8")
        before, after = set(manifest), {*manifest, *(files or {})} - set(without)
        page = bundle.read("README.md").decode("utf-8", errors="replace")
        changed = restated(page, before, after)
        if card and "name" in card:
            old = json.loads(bundle.read(CONFIG))["name"]
            changed = changed.replace(f"\n# {old}\n", f"\n# {card['name']}\n", 1)
        if changed != page:
            texts["README.md"] = changed.encode("utf-8")
        manifest = {name: entry for name, entry in manifest.items() if name not in without}
        with zipfile.ZipFile(temporary, "w") as copy:
            for name, data in texts.items():
                manifest[name] = add(copy, name, io.BytesIO(data))
            for name, file in (files or {}).items():
                with file.open("rb") as source:
                    manifest[name] = add(copy, name, source)
            for name in manifest:
                if name not in copy.namelist():
                    with bundle.open(name) as source:
                        add(copy, name, source)
            add_manifest(copy, manifest)


def restated(page: str, before: Collection[str], after: Collection[str]) -> str:
    """A bundle's card with its rows on the user's texts updated from files `before` to files `after`."""
    old, new = texts_line(before), texts_line(after)
    for name, words in old.items():
        line = f"| {name} | {words} |\n"
        page = page.replace(line, f"| {name} | {new[name]} |\n" if name in new else "")
    return page
