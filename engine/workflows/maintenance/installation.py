"""Checks of the program and its environment: permissions, disk space, libraries, bases, parsers."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from safetensors import SafetensorError, safe_open

from engine.base.registry import BaseRegistry
from engine.core.settings import Settings, home_path
from engine.errors import InputError, MissingError, ModelError
from engine.phrases.parser_resources import read_resources
from engine.workflows.maintenance.finding import Finding

LITTLE = 1 << 30  # bytes of free space below which a customization may not finish


def permissions(settings: Settings) -> Iterator[Finding]:
    home = home_path(settings.home)
    if not home.exists():
        yield Finding("permissions", f"The data folder {home} does not exist yet. The studio creates it when it starts.", str(home))
        return
    for path in (home, home / "projects", home / "jobs", home / "tailor.db"):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)):
            yield Finding("permissions", f"{path} is not readable and writable for this user. Change its permissions.", str(path))
    for path in (home / "tailor.db", home / "settings.toml"):
        if os.name == "posix" and path.exists() and path.stat().st_mode & 0o002:

            def mend(path=path) -> str:  # type: ignore[no-untyped-def]
                os.chmod(path, path.stat().st_mode & ~0o002)
                return f"{path} can be written by its owner and group only."

            yield Finding(
                "permissions", f"{path} is writable for every user of this machine. Run: chmod o-w {path}", str(path), mend
            )


def disk(settings: Settings) -> Iterator[Finding]:
    home = home_path(settings.home)
    if home.exists() and (free := shutil.disk_usage(home).free) < LITTLE:
        yield Finding(
            "disk",
            f"Only {free / 1e6:,.0f} MB are free at {home}, which may not be enough for training. Free some space.",
            str(home),
        )


def libraries(settings: Settings) -> Iterator[Finding]:
    try:
        requirements = requires("tailor-mt") or []
    except PackageNotFoundError:  # run from a folder without being installed
        return
    from packaging.requirements import InvalidRequirement, Requirement

    for line in requirements:
        try:
            library = Requirement(line)
            if library.marker is not None and not library.marker.evaluate({"extra": ""}):
                continue
            have = version(library.name)
        except InvalidRequirement:
            continue
        except PackageNotFoundError:
            yield Finding("libraries", f"The library {library.name} is not installed. Run: pip install '{library}'")
            continue
        if not library.specifier.contains(have, prereleases=True):
            yield Finding(
                "libraries",
                f"{library.name} {have} is outside the tested range ({library.specifier}). Run: pip install '{library}'",
            )


def bases(settings: Settings) -> Iterator[Finding]:
    registry = BaseRegistry(settings)
    entries = registry.entries()
    if not entries:
        yield Finding("bases", f"There is no base model in {settings.assets_dir / 'models'}. Add one with `tailormt base add`.")
    for entry in entries:
        try:
            entry.card()
            broken = next((file for file in entry.folder.glob("*.safetensors") if not whole_tensors(file)), None)
        except ModelError as error:
            yield Finding("bases", f"The base {entry.name} cannot be used: {error}", str(entry.folder))
            continue
        if broken is not None:
            yield Finding("bases", f"{broken} is damaged. Add the base {entry.name} again.", str(broken))


def whole_tensors(path: os.PathLike[str]) -> bool:
    """Whether a safetensors file is as long as its header states."""
    try:
        with safe_open(path, framework="np"):
            return True
    except (SafetensorError, OSError):
        return False


def parsers(settings: Settings) -> Iterator[Finding]:
    """Verify the files named in resources.json against its checksums."""
    for folder in settings.parser_dirs:
        try:
            entries = read_resources(folder)
        except (InputError, MissingError) as error:
            yield Finding("parsers", str(error), str(folder))
            continue
        for code, entry in entries.items():
            for processor, packages in entry.items() if isinstance(entry, dict) else ():
                for name, package in packages.items() if isinstance(packages, dict) else ():
                    file = folder / code / processor / f"{name}.pt"
                    if not isinstance(package, dict) or not re.fullmatch(r"[0-9a-f]{32}", str(package.get("md5", ""))):
                        continue
                    if file.exists():  # only installed ones of stanza's list exist
                        with file.open("rb") as opened:
                            if hashlib.file_digest(opened, "md5").hexdigest() != package["md5"]:
                                yield Finding("parsers", f"{file} is damaged. Install the parser for {code} again.", str(file))
