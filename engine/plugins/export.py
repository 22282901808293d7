"""Writing a bundle: files, card and manifest, then one rename."""

from __future__ import annotations

import datetime
import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from engine.files import replacing
from engine.plugins.bundle import CHUNK, CONFIG, FORMAT_VERSION, MANIFEST, WEIGHTS

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel
    from engine.methods import Method
    from engine.options import Options

__all__ = ["TEXTS", "export_bundle", "write_bundle"]

TEXTS = ("phrases.jsonl", "datastore.jsonl")  # the user's own words, which a bundle can do without


def export_bundle(
    path: Path,
    *,
    name: str,
    base: BaseModel,
    method: Method,
    config: Options,
    module: nn.Module,
    files: Mapping[str, Path],
    decoding: Mapping[str, Any],
    provenance: Mapping[str, Any],
    metrics: Mapping[str, Any],
    with_phrases: bool = True,
    knn: Mapping[str, Any] | None = None,
) -> Path:
    """Write a plugin bundle (see `engine.plugins.bundle`); `files` are the method's artefacts by their bundle names.

    `with_phrases=False` leaves the user's texts out; the memory holds vectors only. `knn`: the settings of a datastore that is
    among the files without being the method's own. Raises StorageError.
    """
    from safetensors.torch import save_file

    about = {
        "format_version": FORMAT_VERSION,
        "peft_type": f"TAILORMT_{method.name.upper()}",
        "task_type": "SEQ_2_SEQ_LM",
        "inference_mode": True,
        "base_model_name_or_path": base.name,
        "base_fingerprint": base.fingerprint(),
        "revision": None,
        "tailormt_version": engine.__version__,
        "name": name,
        "method": method.name,
        "config": config.to_mapping(),
        "source": base.source,
        "target": base.target,
        "decoding": dict(decoding),
        "provenance": {"created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **provenance},
        "metrics": dict(metrics),
        **({"knn": dict(knn)} if knn else {}),
    }
    kept = {key: file for key, file in files.items() if with_phrases or key not in TEXTS}
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        weights = Path(folder) / WEIGHTS
        save_file({key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()}, weights)
        return write_bundle(path, about, {WEIGHTS: weights, **kept})


def write_bundle(path: Path, about: Mapping[str, Any], files: Mapping[str, Path]) -> Path:
    """Write a bundle from its configuration and its files, the weights among them; card and manifest are made here.

    Raises StorageError; nothing half-written stays.
    """
    texts = {
        CONFIG: json.dumps(about, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
        "README.md": card(about, files),
    }
    manifest: dict[str, dict[str, Any]] = {}
    with replacing(path, "the plugin") as temporary, zipfile.ZipFile(temporary, "w") as bundle:
        for key, text in texts.items():
            data = text.encode("utf-8")
            manifest[key] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            bundle.writestr(entry(key), data)
        for key, file in files.items():
            digest, count = hashlib.sha256(), 0
            with file.open("rb") as source, bundle.open(entry(key), "w", force_zip64=True) as out:
                while block := source.read(CHUNK):
                    digest.update(block)
                    count += len(block)
                    out.write(block)
            manifest[key] = {"sha256": digest.hexdigest(), "bytes": count}
        bundle.writestr(entry(MANIFEST), json.dumps({"files": manifest}, indent=2, sort_keys=True) + "\n")
    return path


def entry(name: str) -> zipfile.ZipInfo:
    """A zip entry; tensors do not get smaller, so they are stored as they are."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_STORED if name.endswith(".safetensors") else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def card(about: Mapping[str, Any], files: Mapping[str, Path]) -> str:
    """The bundle's README.md: what it is, how it was made, how well it does, how to use it."""
    made, metrics = about["provenance"], about["metrics"]
    lines = [
        "---",
        "library_name: tailor-mt",
        f"base_model: {about['base_model_name_or_path']}",
        f"language: [{about['source']}, {about['target']}]",
        "tags: [translation, tailor-mt, " + about["method"] + "]",
        "---",
        f"# {about['name']}",
        "",
        f"A plugin for Tailor MT that makes the base `{about['base_model_name_or_path']}` translate from {about['source']} to "
        f"{about['target']} in the manner of its samples. The base itself is not in this bundle and is never changed.",
        "",
        "| | |",
        "|---|---|",
        f"| method | {about['method']} |",
        f"| made | {made['created']}, Tailor MT {about['tailormt_version']} |",
        f"| base fingerprint | `{about['base_fingerprint']}` |",
    ]
    lines += [f"| {key.replace('_', ' ')} | {value} |" for key, value in made.items() if key != "created"]
    lines += [f"| phrases | {'in phrases.jsonl' if 'phrases.jsonl' in files else 'left out'} |", ""]
    if metrics:
        lines += ["## Figures", "", "| | |", "|---|---|"]
        lines += [f"| {key.replace('_', ' ')} | {value} |" for key, value in metrics.items()] + [""]
    lines += [
        "## Use",
        "",
        f"    tailormt translate --base DIR --source {about['source']} --target {about['target']} "
        "--plugin THIS.zip IN.txt -o OUT.txt",
        "",
    ]
    return "\n".join(lines)
