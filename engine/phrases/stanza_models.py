"""Finding stanza's models on disk, loading them without network, and downloading them at the user's request.

A parser folder has stanza's layout: `resources.json`, then `<language>/<processor>/<package>.pt`. Such a folder is created by
`stanza.download(language, model_dir=folder)` on any machine with a network, and may be copied as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_json
from engine.core.devices import pick_device
from engine.core.json_object import Json
from engine.errors import MissingError, TailorError, storage_errors
from engine.messages import Message, mark
from engine.phrases.languages import stanza_code

PROCESSORS = {
    "constituency": ("tokenize", "mwt", "pos", "constituency"),
    "dependency": ("tokenize", "mwt", "pos", "lemma", "depparse"),
}
PARSER = {"constituency": "constituency", "dependency": "depparse"}
NAMES = {
    "constituency": mark("stanza's constituency parser for {language} ({package})"),
    "dependency": mark("stanza's dependency parser for {language} ({package})"),
}
CONNECT = 15  # seconds to wait for any response of stanza's server


@dataclass(frozen=True)
class StanzaModel:
    """A parser that is complete on disk: its processors with their packages, and its folder."""

    kind: str  # constituency or dependency
    language: str  # stanza's code
    folder: Path
    packages: tuple[tuple[str, str], ...]  # processor, package

    @property
    def named(self) -> Message:
        """Its name for a sentence."""
        text = NAMES[self.kind]
        return Message(text, language=self.language, package=dict(self.packages)[PARSER[self.kind]])


def find_models(language: str, kind: str, folders: Sequence[Path]) -> Iterator[StanzaModel]:
    """The parsers of a kind that are complete in the folders, preferred ones first."""
    for folder in map(Path, folders):
        resources = _resources(folder)
        code, entry = _entry(resources, stanza_code(language))

        def on_disk(processor: str, package: str, folder: Path = folder, code: str = code) -> bool:
            return (folder / code / processor / f"{package}.pt").is_file()

        for packages in _plans(entry, kind, on_disk):
            yield StanzaModel(kind, code, folder, packages)


def advice(language: str, kind: str, folders: Sequence[Path]) -> str:
    """Which files to put where, as the end of a sentence: "put stanza's … into …"."""
    code = stanza_code(language)
    files = ", ".join(name for name in PROCESSORS[kind] if name != "mwt")
    return Message(
        "put stanza's models for {code} ({files}) into {folder}, so that it holds resources.json and {code}/{kind}/",
        code=code,
        files=files,
        folder=_target(folders),
        kind=PARSER[kind],
    )


def local_pipeline(language: str, folder: Path, packages: Mapping[str, str], **settings: Any) -> Any:
    """stanza's Pipeline of only these packages ({processor: package}), from local files."""
    import stanza

    return stanza.Pipeline(
        language, dir=str(folder), package=None, processors=dict(packages), download_method=None, verbose=False, **settings
    )


def load_pipeline(model: StanzaModel, device: str = "auto") -> Any:
    """stanza's Pipeline from local files only, one sentence per document, on a device as for `pick_device`.

    It is cached, since loading takes seconds. Raises MissingError if stanza is not installed or its files are damaged or of
    another version, OptionError if the device is not available.
    """
    _stanza()
    return cached_pipeline(model, str(pick_device(device)))


@lru_cache(maxsize=2)
def cached_pipeline(model: StanzaModel, device: str) -> Any:
    """The pipeline on a torch device, cached."""
    try:
        return local_pipeline(model.language, model.folder, dict(model.packages), tokenize_no_ssplit=True, device=device)
    except Exception as error:  # stanza passes on the errors of unpickling, torch and the file system
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise MissingError(
            "{model} cannot be loaded ({reason}): put a fresh copy of its files there.", model=model.named, reason=reason
        ) from error


def download_model(language: str, kinds: Sequence[str], folders: Sequence[Path]) -> StanzaModel | None:
    """Let stanza download the first of `kinds` that it offers for the language, into the last of `folders`.

    None if stanza has no such parser for the language. Raises MissingError if the server cannot be reached, StorageError if the
    folder cannot be written.
    """
    stanza = _stanza()
    import requests  # type: ignore[import-untyped]
    from stanza.resources import common

    folder = _target(folders)
    try:
        with storage_errors("the parser's models", folder):
            folder.mkdir(parents=True, exist_ok=True)
            # stanza's requests have no time limit: first make sure that the server responds.
            requests.head(common.DEFAULT_RESOURCES_URL, timeout=CONNECT)
            code, entry = _entry(_resources(folder), stanza_code(language))
            if not any(any(_plans(entry, kind, _anything)) for kind in kinds):
                # Only now: the user's list of other models must not be overwritten unnecessarily.
                common.download_resources_json(str(folder), resources_url=common.DEFAULT_RESOURCES_URL)
                code, entry = _entry(_resources(folder), stanza_code(language))
            for kind in kinds:
                for packages in _plans(entry, kind, _anything):
                    stanza.download(
                        code,
                        model_dir=str(folder),
                        package=None,
                        processors={name: package for name, package in packages if package != "identity"},
                        verbose=False,
                        download_json=False,
                    )
                    return StanzaModel(kind, code, folder, packages)
    except TailorError:
        raise
    except Exception as error:  # requests, httpx, huggingface_hub: each has different errors
        raise MissingError(
            "The parser for {stanza_code} could not be downloaded ({name}): connect to the network, or {advice}.",
            stanza_code=stanza_code(language), name=type(error).__name__, advice=advice(language, kinds[0], folders),
        ) from error  # fmt: skip
    return None


def _stanza() -> Any:
    try:
        import stanza
    except ImportError:
        raise MissingError("stanza is not installed: run `pip install stanza` to parse sentences.") from None
    return stanza


def _target(folders: Sequence[Path]) -> Path:
    """The folder for new models: the last one, which is the user's; the first may be bundled with the program."""
    return Path(folders[-1]) if folders else Path.home() / "stanza_resources"


def _resources(folder: Path) -> Json:
    """stanza's list of models; empty if there is no readable one."""
    return read_json(folder / "resources.json")


def _entry(resources: Json, code: str) -> tuple[str, Json]:
    """The language's entry, with aliases resolved."""
    for _ in range(3):
        entry = resources.get(code)
        if not isinstance(entry, dict):
            return code, {}
        if not isinstance(entry.get("alias"), str):
            return code, entry
        code = entry["alias"]
    return code, {}


def _anything(processor: str, package: str) -> bool:
    return True


def _plans(entry: Json, kind: str, present: Callable[[str, str], bool]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Complete sets of packages for a parser: stanza's default first, then other available ones, sorted by name."""
    needed = {processor: _packages(entry, processor, present) for processor in PROCESSORS[kind] if processor != PARSER[kind]}
    if not needed["mwt"] and "mwt" not in _defaults(entry):
        del needed["mwt"]  # the language has no multi-word tokens
    if "lemma" in needed and not needed["lemma"]:
        needed["lemma"] = ["identity"]
    if not all(needed.values()):
        return
    for package in _packages(entry, PARSER[kind], present):
        chosen = {processor: packages[0] for processor, packages in needed.items()} | {PARSER[kind]: package}
        yield tuple((processor, chosen[processor]) for processor in PROCESSORS[kind] if processor in chosen)


def _defaults(entry: Json) -> Json:
    packages = entry.get("packages")
    default = packages.get("default") if isinstance(packages, dict) else None
    return default if isinstance(default, dict) else {}


def _packages(entry: Json, processor: str, present: Callable[[str, str], bool]) -> list[str]:
    """Packages of a processor that are present with their word vectors and language models."""
    listed = entry.get(processor)
    if not isinstance(listed, dict):
        return []
    default = _defaults(entry).get(processor)
    names = sorted((name for name in listed if isinstance(name, str)), key=lambda name: (name != default, name))
    selected = []
    for name in names:
        details = listed[name] if isinstance(listed[name], dict) else {}
        needs = details.get("dependencies") or []
        pairs = [(str(need.get("model")), str(need.get("package"))) for need in needs if isinstance(need, dict)]
        if all(present(model, package) for model, package in [(processor, name), *pairs]):
            selected.append(name)
    return selected
