"""Reading a bundle as untrusted input: only known names, sizes and ratios within limits, bytes as in the manifest.

adapter_config.json        method, settings, base and its fingerprint, direction, decoding defaults, metrics
adapter_model.safetensors  the trained weights, exactly the method's keys, or if packed, their changes from the base
memory.safetensors         the method's memory, if any
memory.sources.safetensors for a memory that is read by sentence: which sentences share an input's rarest words
memory.jsonl               its sentences; may be omitted for confidentiality
domain_filter.safetensors  recognises sentences that resemble the samples, if other sentences are left to the base
domains.json               the domains' names, if the method distinguishes domains
phrases.jsonl              the phrases in the memory's order; may be omitted for confidentiality
README.md                  the card
part-1.zip, part-2.zip …   the plugins of a blend, each a complete bundle
manifest.json              SHA-256 and bytes of each file above
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.core.json_object import Json
from engine.errors import BundleError, storage_errors

FORMAT_VERSION = 3  # the newest that can be read
# The formats written: a single plugin (readable by earlier versions), a blend, a plugin with packed weights.
PLAIN, BLENDED, PACKED = 1, 2, 3
MANIFEST = "manifest.json"
CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
DOMAIN_FILTER = "domain_filter.safetensors"
PARTS = tuple(f"part-{number}.zip" for number in range(1, 5))
REQUIRED = (CONFIG, WEIGHTS, "README.md", MANIFEST)
KNOWN = (
    *REQUIRED, "memory.safetensors", "memory.sources.safetensors", "memory.jsonl",
    "phrases.jsonl", "index.faiss", "pairs.jsonl", "datastore.safetensors",
    "datastore.jsonl", "datastore.faiss", "datastore.sources.safetensors", "datastore.gate.safetensors", "adaptive.safetensors",
    DOMAIN_FILTER, "domains.json", "proportions.safetensors", "proportions.json", "ngrams.safetensors", *PARTS,
)  # fmt: skip
MAX_BYTES = 16 << 30  # unpacked, all files
MAX_TEXT = 1 << 30  # one text file
MAX_JSON = 64 << 20  # a JSON file, which is read as a whole
MAX_CONFIG = 1 << 20  # the two files that are read before any check of the bundle's content
MAX_CARD = 1 << 20  # README.md; longer ones are truncated
MAX_RATIO = 200  # unpacked to packed; text packs 3 to 20 times smaller
LIMITS = {
    CONFIG: MAX_CONFIG,
    MANIFEST: MAX_CONFIG,
    "domains.json": MAX_JSON,
    "proportions.json": MAX_JSON,
    WEIGHTS: MAX_BYTES,
    "memory.safetensors": MAX_BYTES,
    "memory.sources.safetensors": MAX_BYTES,
    "index.faiss": MAX_BYTES,
    "datastore.safetensors": MAX_BYTES,
    "datastore.faiss": MAX_BYTES,
    "datastore.sources.safetensors": MAX_BYTES,
    "datastore.gate.safetensors": MAX_JSON,
    "adaptive.safetensors": MAX_JSON,
    DOMAIN_FILTER: MAX_JSON,
    "proportions.safetensors": MAX_TEXT,
    "ngrams.safetensors": MAX_TEXT,
    **dict.fromkeys(PARTS, MAX_BYTES),
}
KEYS: dict[str, type] = {
    **dict.fromkeys(("name", "method", "source", "target", "base_fingerprint", "base_model_name_or_path"), str),
    **dict.fromkeys(("config", "decoding", "provenance", "metrics"), dict),
}
CHUNK = 1 << 20


class _InPieces(io.FileIO):
    """A file that refuses large reads, so that a zip directory, which is read at once, has a limited size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > CHUNK:
            raise BundleError("{path} is not a plugin bundle: its directory is too long. Do not use it.", path=self.name)
        return super().read(size) or b""


@contextlib.contextmanager
def open_bundle(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the zip file within the block. Raises BundleError if the path is not one."""
    if not path.exists():
        raise BundleError("There is no file {path}.", path=path)
    if path.is_dir():
        raise BundleError("{path} is a folder, not a plugin bundle. Give the bundle's file.", path=path)
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(zipfile.ZipFile(stack.enter_context(_InPieces(path))))
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
            raise BundleError("{path} is not a plugin bundle: it cannot be read as a zip file.", path=path) from None
        yield bundle


@contextlib.contextmanager
def damage(path: Path, name: str) -> Iterator[None]:
    """Convert errors from reading a damaged file to BundleError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise BundleError(
            "{path}: {name} is damaged ({error}). Get a new copy of the bundle.", path=path, name=name, error=error
        ) from None


def check_names(path: Path, bundle: zipfile.ZipFile) -> None:
    """Check names, sizes and ratios before anything is unpacked. Raises BundleError."""
    entries = bundle.infolist()
    names = [entry.filename for entry in entries]
    for name in names:
        if name.startswith(("/", "\\")) or ".." in Path(name.replace("\\", "/")).parts or ":" in name:
            raise BundleError(
                "{path} contains the path {name!r}, which leads out of the bundle. Nothing was unpacked.", path=path, name=name
            )
        if name not in KNOWN:
            raise BundleError(
                "{path} contains a file that does not belong in a plugin: {name!r}. Nothing was unpacked.", path=path, name=name
            )
        if names.count(name) > 1:
            raise BundleError("{path} contains {name} twice. Nothing was unpacked.", path=path, name=name)
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise BundleError("{path} is not a plugin bundle: it has no {missing}.", path=path, missing=missing[0])
    for entry in entries:
        if entry.file_size > LIMITS.get(entry.filename, MAX_TEXT) or entry.file_size > MAX_RATIO * max(entry.compress_size, 1024):
            raise BundleError(
                "{path}: {entry} would unpack from {compress_size:,} to {file_size:,} bytes, far more than a "
                "real plugin. Nothing was unpacked.",
                path=path, entry=entry.filename, file_size=entry.file_size, compress_size=entry.compress_size,
            )  # fmt: skip
        if entry.flag_bits & 0x1:
            raise BundleError("{path}: {entry} is encrypted. Plugins are not.", path=path, entry=entry.filename)
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BundleError(
                "{path}: {entry} uses a compression that plugins do not use. Get a new copy of the bundle.",
                path=path,
                entry=entry.filename,
            )
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise BundleError(
            "{path} would unpack to more than {max_bytes} GiB. Nothing was unpacked.", path=path, max_bytes=MAX_BYTES >> 30
        )


def _read(bundle: zipfile.ZipFile, name: str) -> bytes:
    """A file's bytes, read in chunks: read at once, a file longer than declared would be unpacked completely first."""
    with bundle.open(name) as file:
        return b"".join(iter(lambda: file.read(CHUNK), b""))


def read_json(path: Path, bundle: zipfile.ZipFile, name: str) -> Json:
    with damage(path, name):
        value = json.loads(_read(bundle, name).decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # lone surrogates could not be written anywhere
    if not isinstance(value, dict):
        raise BundleError("{path}: {name} is not a JSON object. Get a new copy of the bundle.", path=path, name=name)
    return value


def read_config(path: Path, bundle: zipfile.ZipFile) -> Json:
    """The unchecked `adapter_config.json`. Raises BundleError."""
    return read_json(path, bundle, CONFIG)


def check_config(path: Path, config: Json) -> None:
    """Check the format version, then the required keys of every plugin. Raises BundleError."""
    version = config.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise BundleError("{path}: {config} has no format_version. It was not made by Tailor MT.", path=path, config=CONFIG)
    if version > FORMAT_VERSION:
        raise BundleError(
            "{path} has format {version}; this program reads formats up to {format_version}. Update Tailor MT.",
            path=path, version=version, format_version=FORMAT_VERSION,
        )  # fmt: skip
    for key, kind in KEYS.items():
        if key not in config:
            raise BundleError("{path}: {config} lacks {key}. Get a new copy of the bundle.", path=path, config=CONFIG, key=key)
        if not isinstance(config[key], kind):
            raise BundleError(
                "{path}: {key} in {config} is invalid. Get a new copy of the bundle.", path=path, key=key, config=CONFIG
            )
    if not isinstance(config.get("knn", {}), dict):
        raise BundleError("{path}: knn in {config} is invalid. Get a new copy of the bundle.", path=path, config=CONFIG)


def read_manifest(path: Path, bundle: zipfile.ZipFile) -> dict[str, Json]:
    """{file: {sha256, bytes}}. Raises BundleError unless it lists exactly the bundle's files."""
    files = read_json(path, bundle, MANIFEST).get("files")
    names = {name for name in bundle.namelist() if name != MANIFEST}
    if not isinstance(files, dict) or set(files) != names:
        listed = set(files) if isinstance(files, dict) else set()
        odd = sorted(names ^ listed)
        raise BundleError(
            "{path}: the manifest and the files differ ({odd}). Get a new copy of the bundle.",
            path=path,
            odd=odd[0] if odd else MANIFEST,
        )
    return files


def copy_checked(path: Path, bundle: zipfile.ZipFile, name: str, entry: Json, out: Any) -> None:
    """Stream one file, comparing its length and SHA-256 with the manifest. Raises BundleError if they differ."""
    digest, count = hashlib.sha256(), 0
    declared = bundle.getinfo(name).file_size
    with damage(path, name):
        file = bundle.open(name)
    with file:
        while True:
            with damage(path, name):
                block = file.read(CHUNK)
            if not block:
                break
            count += len(block)
            if count > declared:
                raise BundleError("{path}: {name} is longer than it declares. Get a new copy of the bundle.", path=path, name=name)
            digest.update(block)
            if out is not None:
                out.write(block)  # a full disk is not reported as damage
    if not isinstance(entry, dict) or digest.hexdigest() != entry.get("sha256") or count != entry.get("bytes"):
        raise BundleError(
            "{path}: {name} does not match its manifest: it was changed or damaged. Get a new copy of the bundle.",
            path=path,
            name=name,
        )


def read_bundle_card(path: str | Path) -> Json:
    """`adapter_config.json` with `bytes` and `files` added, without checking every byte. Raises BundleError."""
    path = Path(path)
    with open_bundle(path) as bundle:
        check_names(path, bundle)
        config = read_config(path, bundle)
        check_config(path, config)
        return {**config, "bytes": path.stat().st_size, "files": sorted(read_manifest(path, bundle))}


def read_bundle_text(path: str | Path) -> str:
    """The README.md of a bundle, its card for human readers. Raises BundleError."""
    path = Path(path)
    with open_bundle(path) as bundle:
        check_names(path, bundle)
        with damage(path, "README.md"), bundle.open("README.md") as file:
            return file.read(MAX_CARD).decode("utf-8", errors="replace")


def verify_bundle(path: str | Path) -> Json:
    """Check everything that can be checked without the base; returns the card. Raises BundleError with one sentence."""
    path = Path(path)
    card = read_bundle_card(path)
    with open_bundle(path) as bundle:
        check_bytes(path, bundle)
    return card


def check_bytes(path: Path, bundle: zipfile.ZipFile, *, inner: bool = False) -> int:
    """Check every byte against the manifest, also inside a blend; returns the number of files. Raises BundleError."""
    files = read_manifest(path, bundle)
    for name, entry in files.items():
        copy_checked(path, bundle, name, entry, None)
    for name in (name for name in PARTS if name in files):
        if inner:
            raise BundleError("{path} is a blend inside a blend, which is not supported. Get a new copy of the bundle.", path=path)
        inner_path = path / name
        with damage(path, name), bundle.open(name) as file, zipfile.ZipFile(file) as part:
            check_names(inner_path, part)
            check_config(inner_path, read_config(inner_path, part))
            check_bytes(inner_path, part, inner=True)
    return len(files)


def unpack_bundle(path: str | Path, folder: Path) -> Path:
    """Verify and unpack a bundle into a subfolder of `folder` named by its content; later calls reuse it.

    Every call checks the bundle's bytes. Returns the subfolder. Raises BundleError or StorageError and leaves nothing incomplete.
    """
    path = Path(path)
    with open_bundle(path) as bundle:
        check_names(path, bundle)
        check_config(path, read_config(path, bundle))
        manifest = read_manifest(path, bundle)
        target = folder / hashlib.sha256(_read(bundle, MANIFEST)).hexdigest()[:32]
        if target.exists() and all(
            (target / name).exists() and (target / name).stat().st_size == entry.get("bytes") for name, entry in manifest.items()
        ):
            for name, entry in manifest.items():
                copy_checked(path, bundle, name, entry, None)
            return target
        with storage_errors("the plugin", folder):
            folder.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder))
            try:
                for name, entry in manifest.items():
                    with (temporary / name).open("wb") as out:
                        copy_checked(path, bundle, name, entry, out)
                shutil.rmtree(target, ignore_errors=True)
                try:
                    os.rename(temporary, target)
                except OSError:
                    if not target.exists():  # another process may have unpacked the same bundle meanwhile
                        raise
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return target
