"""Writing stanza's list of models, resources.json, for `stanza.Pipeline(language, dir=…, download_method=None)`.

Layout and keys are those of stanza's server: https://stanfordnlp.github.io/stanza/ (resources_*.json).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.atomic_files import write_json
from engine.core.json_object import Json
from engine.errors import InputError, storage_errors

NAMES = {"en": "English", "zh-hans": "Simplified_Chinese", "zh-hant": "Traditional_Chinese", "de": "German"}
ALIASES = {"zh": "zh-hans"}
NEEDS_VECTORS = ("pos", "depparse", "constituency")
LIST = "resources.json"


def read_resources(folder: Path) -> Json:
    """The folder's list, or empty if there is none. Raises InputError if it is not a list of stanza's."""
    path = folder / LIST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError("{path} is not stanza's list of models: move it away, or choose another folder.", path=path)
    return data


def install(folder: Path, language: str, package: str, files: Mapping[str, Path]) -> None:
    """Install a set of files (processor -> .pt) in `folder` and its list; the set becomes the language's default.

    Each file is replaced atomically, the list last: a concurrent reader sees either the old or the new set. Raises
    StorageError, InputError on an invalid list.
    """
    resources = read_resources(folder)
    for processor, source in files.items():
        target = folder / language / processor / f"{package}.pt"
        with storage_errors("the parser", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.tmp")
            shutil.copyfile(source, temporary)
            os.replace(temporary, target)
    resources[language] = entry(resources.get(language), folder / language, package, tuple(files))
    for alias, code in ALIASES.items():
        if code == language:
            resources.setdefault(alias, {"alias": code})
    write_json(folder / LIST, resources, "the list of parsers")


def entry(existing: Any, folder: Path, package: str, processors: tuple[str, ...]) -> Json:
    """The language's entry with this set as default; other existing sets stay listed."""
    result: Json = dict(existing) if isinstance(existing, dict) and "alias" not in existing else {}
    result.setdefault("lang_name", NAMES.get(folder.name, folder.name))
    for processor in processors:
        details: Json = {"md5": md5(folder / processor / f"{package}.pt")}
        if processor in NEEDS_VECTORS and "pretrain" in processors:
            details["dependencies"] = [{"model": "pretrain", "package": package}]
        listed = result.get(processor)
        result[processor] = {**(listed if isinstance(listed, dict) else {}), package: details}
    default = {name: package for name in processors if name != "pretrain"}
    if "depparse" in default:
        default["lemma"] = "identity"  # stanza's parser requires lemmas; ours were trained with the words as lemmas
    packages = result.get("packages")
    result["packages"] = {**(packages if isinstance(packages, dict) else {}), "default": default}
    return result


def md5(path: Path) -> str:
    """stanza's checksum of a file; not for security."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def set_bytes(folder: Path, language: str, package: str) -> int:
    """The size of a language's set in bytes."""
    return sum(path.stat().st_size for path in (folder / language).glob(f"*/{package}.pt"))
