"""Importing a bundle check by check, so that the user sees what was checked and where it stopped.

This process reads only the zip's directory and the small JSON files; everything else is read in a separate process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.base import BaseModel
from engine.core.json_object import Json
from engine.core.languages import language_message, same_language
from engine.errors import BundleError, TailorError
from engine.messages import Message, mark
from engine.plugins.bundle import check_config, check_names, open_bundle, read_config
from engine.plugins.bundle_content import check_decoding, check_texts
from engine.plugins.plugin import short
from engine.plugins.scratch import answers

TITLES = {
    "file": mark("A plugin bundle"),
    "format": mark("Format"),
    "languages": mark("Languages"),
    "base": mark("Base"),
    "checksums": mark("Checksums"),
    "loading": mark("Loads and fits the base"),
    "trial": mark("Translates"),
    "licence": mark("Licence"),
}
# The checks made in this process, and those made in a separate one.
HERE, THERE = tuple(TITLES)[:4], tuple(TITLES)[4:]


@dataclass(frozen=True)
class Check:
    """The result of one check of a bundle, in a sentence. `ok` is false if the bundle cannot be used."""

    name: str
    ok: bool
    sentence: str
    restricted: bool = False  # licence only: the user must confirm

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def to_mapping(self) -> dict[str, object]:
        return {"name": self.name, "ok": self.ok, "sentence": self.sentence}


def check_bundle(
    path: str | Path,
    *,
    base: Callable[[], BaseModel] | None = None,
    direction: tuple[str, str] | None = None,
    cache: Path | None = None,
    shown: str = "",
) -> Iterator[Check]:
    """The checks in order; ends after the first that fails.

    Without `direction` (source, target) or `base`, which is only loaded when needed, the checks that need them are skipped.
    `shown` replaces the path in sentences.
    """
    path = Path(path)
    shown = shown or str(path)
    path = path.absolute()
    look = _Checker(path, base, direction)
    name = HERE[0]
    try:
        for name in HERE:
            result = getattr(look, name)()
            if result is not None:
                yield result
        name, *rest = THERE
        for answer in answers(path, base() if base else None, cache):
            sentence = Message.from_mapping(answer["sentence"]).naming(str(path), shown)
            yield Check(answer["name"], answer["ok"], sentence, answer["restricted"])
            name = rest[THERE.index(answer["name"])] if answer["ok"] and not answer["last"] else name
    except TailorError as error:
        yield Check(name, False, error.message.naming(str(path), shown))


class _Checker:
    """The state shared by the checks. Each method is a check: it returns None if not applicable and raises on failure."""

    def __init__(self, path: Path, base: Callable[[], BaseModel] | None, direction: tuple[str, str] | None) -> None:
        self.path, self.load, self.direction = path, base, direction
        self.about: Json = {}

    def file(self) -> Check:
        with open_bundle(self.path) as bundle:
            check_names(self.path, bundle)
            count = len(bundle.namelist())
        return Check("file", True, Message("{count} files, all of types that belong in a plugin, none too large.", count=count))

    def format(self) -> Check:
        with open_bundle(self.path) as bundle:
            self.about = read_config(self.path, bundle)
        check_config(self.path, self.about)
        check_texts(self.path, self.about)
        check_decoding(self.path, self.about)
        day = str(self.about["provenance"].get("created", ""))[:10]
        version = {"format": self.about["format_version"], "version": self.about.get("tailormt_version", "?")}
        if not day:
            return Check("format", True, Message("Format {format}, made by Tailor MT {version}.", **version))
        words = Message("Format {format}, made by Tailor MT {version} on {day}.", **version, day=day)
        return Check("format", True, words)

    def languages(self) -> Check | None:
        if self.direction is None:
            return None
        pair = (self.about["source"], self.about["target"])
        names = [language_message(language) for language in pair]
        if not all(same_language(language, other) for language, other in zip(pair, self.direction, strict=True)):
            raise BundleError(
                "The plugin translates from {source} to {target}, this project from {project_source} to {project_target}. Import "
                "it into a project of its languages.",
                source=names[0], target=names[1],
                project_source=language_message(self.direction[0]), project_target=language_message(self.direction[1]),
            )  # fmt: skip
        return Check("languages", True, Message("From {source} to {target}, like this project.", source=names[0], target=names[1]))

    def base(self) -> Check | None:
        if self.load is None:
            return None

        base, mark = self.load(), self.about["base_fingerprint"]
        if mark != base.fingerprint():
            raise BundleError(
                "The plugin was made for the base {made_for} ({made_for_id}), this project has {base} "
                "({base_id}). Import it into a project with its own base.",
                made_for=self.about["base_model_name_or_path"], made_for_id=short(mark), base=base.name,
                base_id=short(base.fingerprint()),
            )  # fmt: skip
        words = Message("Made for {base} ({mark}), the base of this project.", base=base.name, mark=short(mark))
        return Check("base", True, words)
