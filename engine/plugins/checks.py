"""Taking a bundle in, check by check, so that a person sees what was looked at and where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError, TailorError
from engine.languages import same_language
from engine.plugins.bundle import check_bytes, check_config, check_names, open_bundle, read_bundle_text, read_config

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["TITLES", "Check", "check_bundle"]

TITLES = {
    "file": "A plugin bundle",
    "format": "Format",
    "checksums": "Checksums",
    "languages": "Languages",
    "base": "Base",
    "loading": "Loads and fits",
    "licence": "Licence",
}


@dataclass(frozen=True)
class Check:
    """One look at a bundle: what was found, in a sentence. `ok` is false where the bundle cannot be used."""

    name: str
    ok: bool
    sentence: str
    restricted: bool = False  # of the licence: it asks for a word of the user

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def to_mapping(self) -> dict[str, Any]:
        return {"name": self.name, "ok": self.ok, "sentence": self.sentence}


def check_bundle(
    path: str | Path,
    *,
    base: Callable[[], BaseModel] | None = None,
    direction: tuple[str, str] | None = None,
    cache: Path | None = None,
    shown: str = "",
) -> Iterator[Check]:
    """The checks in the order in which they are made; ends after the first that fails.

    Without `direction` (source, target) and `base`, which is loaded only when it is needed, the checks that compare with them
    are left out. `shown` takes the place of the path in sentences.
    """
    path = Path(path)
    look = _Look(path, base, direction, cache)
    for name in TITLES:
        try:
            found = getattr(look, name)()
        except TailorError as error:
            words = str(error).replace(str(path), shown) if shown else str(error)
            yield Check(name, False, words)
            return
        if found is not None:
            yield found


class _Look:
    """What the checks share; each method is one, returns None where it does not apply and raises where it fails."""

    def __init__(
        self,
        path: Path,
        base: Callable[[], BaseModel] | None,
        direction: tuple[str, str] | None,
        cache: Path | None,
    ) -> None:
        self.path, self.load, self.direction, self.cache = path, base, direction, cache
        self.about: dict[str, Any] = {}

    def file(self) -> Check:
        with open_bundle(self.path) as bundle:
            check_names(self.path, bundle)
            count = len(bundle.namelist())
        return Check("file", True, f"{count} files, all of kinds that a plugin has, none too large.")

    def format(self) -> Check:
        with open_bundle(self.path) as bundle:
            self.about = read_config(self.path, bundle)
        check_config(self.path, self.about)
        made = str(self.about["provenance"].get("created", ""))[:10]
        words = f"Format {self.about['format_version']}, made by Tailor MT {self.about.get('tailormt_version', '?')}"
        return Check("format", True, f"{words}{f' on {made}' if made else ''}.")

    def checksums(self) -> Check:
        with open_bundle(self.path) as bundle:
            count = check_bytes(self.path, bundle)
        return Check("checksums", True, f"All {count} files are, to the byte, what the manifest says.")

    def languages(self) -> Check | None:
        if self.direction is None:
            return None
        own = (self.about["source"], self.about["target"])
        if not all(same_language(one, other) for one, other in zip(own, self.direction, strict=True)):
            raise BundleError(
                f"The plugin translates from {own[0]} to {own[1]}, this project from {self.direction[0]} to "
                f"{self.direction[1]}. Import it into a project of its languages."
            )
        return Check("languages", True, f"From {own[0]} to {own[1]}, as this project.")

    def base(self) -> Check | None:
        if self.load is None:
            return None
        from engine.plugins.plugin import short

        base, mark = self.load(), self.about["base_fingerprint"]
        if mark != base.fingerprint():
            raise BundleError(
                f"The plugin was made for the base {self.about['base_model_name_or_path']} ({short(mark)}), this project has "
                f"{base.name} ({short(base.fingerprint())}). Import it into a project with its own base."
            )
        return Check("base", True, f"Made for {base.name} ({short(mark)}), the base of this project.")

    def loading(self) -> Check | None:
        if self.load is None:
            return None
        from engine.plugins.plugin import Plugin

        plugin = Plugin.load(self.path, self.load(), cache=self.cache)
        weights = sum(value.numel() for value in plugin.module.state_dict().values())
        return Check("loading", True, f"{plugin.method.capabilities.title}, {weights:,} weights of its own.")

    def licence(self) -> Check:
        from engine.cards import parse_card

        card = parse_card(read_bundle_text(self.path))
        if not card.license:
            return Check("licence", True, "The plugin states none. The licence of its base holds for its use.")
        return Check("licence", True, card.license_line.removeprefix("Licence: "), restricted=card.restricted)
