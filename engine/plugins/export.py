"""Writing a bundle: files, card and manifest, then one rename."""

from __future__ import annotations

import datetime
import io
import json
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import engine
from engine.base import BaseModel
from engine.core.atomic_files import atomic_write, copy_hashed
from engine.core.json_object import Json
from engine.core.options import Options
from engine.core.tensor_files import save_tensors
from engine.errors import OptionError
from engine.methods import Method
from engine.plugins.bundle import CONFIG, DOMAIN_FILTER, MANIFEST, PACKED, PARTS, PLAIN, WEIGHTS

if TYPE_CHECKING:
    from torch import nn

PRESENT, LEFT_OUT = "in phrases.jsonl", "left out"
TEXTS = ("phrases.jsonl", "memory.jsonl", "datastore.jsonl")  # the user's texts, which a bundle does not need


@dataclass(frozen=True)
class BundleContent:
    """The content of a bundle; `files` are the method's artefacts by their bundle names."""

    name: str
    base: BaseModel
    method: Method
    config: Options
    module: nn.Module
    files: Mapping[str, Path]
    decoding: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    with_phrases: bool = True  # otherwise the user's texts are omitted; the memory holds vectors only
    knn: Mapping[str, Any] | None = None  # the settings of an additional datastore that is among the files


def export_bundle(path: Path, content: BundleContent) -> Path:
    """Write a plugin bundle (see `engine.plugins.bundle`).

    Raises OptionError if the method needs texts that should be omitted, StorageError.
    """
    base, method = content.base, content.method
    if not content.with_phrases:
        check_without_texts(method)
    packed = method.packed(content.module)
    adapter_config = {
        "format_version": PLAIN if packed.keys() == content.module.state_dict().keys() else PACKED,
        "peft_type": f"TAILORMT_{method.name.upper()}",
        "task_type": "SEQ_2_SEQ_LM",
        "inference_mode": True,
        "base_model_name_or_path": base.name,
        "base_fingerprint": base.fingerprint(),
        "revision": None,
        "tailormt_version": engine.__version__,
        "name": content.name,
        "method": method.name,
        "config": content.config.to_mapping(),
        "source": base.source,
        "target": base.target,
        "decoding": dict(content.decoding),
        "provenance": {"created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **content.provenance},
        "metrics": dict(content.metrics),
        **({"knn": dict(content.knn)} if content.knn else {}),
    }
    selected = {key: file for key, file in content.files.items() if content.with_phrases or key not in TEXTS}
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        weights = save_tensors(Path(folder) / WEIGHTS, packed, "the plugin")
        return write_bundle(path, adapter_config, {WEIGHTS: weights, **selected})


def check_without_texts(method: Method) -> None:
    """Raise OptionError if a bundle of this method is useless without the user's sentences."""
    if method.capabilities.needs_texts:
        raise OptionError(
            "The method {method} reads its sentences while it translates, so a bundle without them does "
            "nothing. Keep them, or replace them with sentences that you may share: `tailormt plugin swap`.",
            method=method.name,
        )


def write_bundle(path: Path, adapter_config: Mapping[str, Any], files: Mapping[str, Path]) -> Path:
    """Write a bundle from its configuration and its files, including weights; card and manifest are created here.

    Raises StorageError and leaves nothing incomplete.
    """
    texts = {
        CONFIG: json.dumps(adapter_config, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
        "README.md": card(adapter_config, files),
    }
    manifest: dict[str, Json] = {}
    with atomic_write(path, "the plugin") as temporary, zipfile.ZipFile(temporary, "w") as bundle:
        for key, text in texts.items():
            manifest[key] = add(bundle, key, io.BytesIO(text.encode("utf-8")))
        for key, file in files.items():
            with file.open("rb") as source:
                manifest[key] = add(bundle, key, source)
        add_manifest(bundle, manifest)
    return path


def add(bundle: zipfile.ZipFile, name: str, source: IO[bytes]) -> Json:
    """Stream a file into a bundle; returns its manifest entry."""
    with bundle.open(entry(name), "w", force_zip64=True) as out:
        return copy_hashed(source, out)


def add_manifest(bundle: zipfile.ZipFile, manifest: Mapping[str, Json]) -> None:
    bundle.writestr(entry(MANIFEST), json.dumps({"files": manifest}, indent=2, sort_keys=True) + "\n")


def entry(name: str) -> zipfile.ZipInfo:
    """A zip entry; tensors and inner bundles do not compress, so they are stored."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_STORED if name.endswith((".safetensors", ".zip")) else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def texts_line(files: Collection[str]) -> dict[str, str]:
    """Rows of a bundle's card on which of the user's texts it contains."""
    if PARTS[0] in files:
        return {"phrases and sentences": "as the cards of its plugins say"}
    result = {"phrases": PRESENT if "phrases.jsonl" in files else LEFT_OUT}
    if "pairs.jsonl" in files:
        result["sentences"] = "in pairs.jsonl: the method reads them while it translates, so they cannot be left out"
    if "memory.sources.safetensors" in files:
        words = "in memory.jsonl" if "memory.jsonl" in files else "left out"
        result["memory"] = f"its words in their order, from which sentences can be put together; sentences {words}"
    if "datastore.safetensors" in files:
        words = "in datastore.jsonl" if "datastore.jsonl" in files else "left out"
        result["datastore"] = f"its words in their order, from which sentences can be put together; sentences {words}"
    if DOMAIN_FILTER in files:
        result["domain filter"] = "word pieces and pairs of them that several sources have"
    return result


def card(adapter_config: Mapping[str, Any], files: Mapping[str, Path]) -> str:
    """The bundle's README.md: its purpose, provenance, quality and use."""
    provenance, metrics = adapter_config["provenance"], adapter_config["metrics"]
    lines = [
        "---",
        "library_name: tailor-mt",
        f"base_model: {adapter_config['base_model_name_or_path']}",
        f"language: [{adapter_config['source']}, {adapter_config['target']}]",
        # JSON is valid YAML.
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in adapter_config.get("license", {}).items()),
        "tags: [translation, tailor-mt, " + adapter_config["method"] + "]",
        "---",
        f"# {adapter_config['name']}",
        "",
        f"A plugin for Tailor MT that makes the base `{adapter_config['base_model_name_or_path']}` translate from "
        f"{adapter_config['source']} to {adapter_config['target']} in the manner of its samples. "
        "The base itself is not in this bundle and is never changed.",
        "",
        "| | |",
        "|---|---|",
        f"| method | {adapter_config['method']} |",
        f"| made | {provenance['created']}, Tailor MT {adapter_config['tailormt_version']} |",
        f"| base fingerprint | `{adapter_config['base_fingerprint']}` |",
    ]
    lines += [f"| {key.replace('_', ' ')} | {value} |" for key, value in provenance.items() if key != "created"]
    lines += [f"| {name} | {words} |" for name, words in texts_line(files).items()] + [""]
    if metrics:
        lines += ["## Figures", "", "| | |", "|---|---|"]
        lines += [f"| {key.replace('_', ' ')} | {value} |" for key, value in metrics.items()] + [""]
    lines += [
        "## Use",
        "",
        f"    tailormt translate --base DIR --source {adapter_config['source']} --target {adapter_config['target']} "
        "--plugin THIS.zip IN.txt -o OUT.txt",
        "",
    ]
    return "\n".join(lines)
