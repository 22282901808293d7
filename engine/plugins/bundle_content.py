"""Checks of a bundle's content before use: texts display unaltered, settings exist, numbers are finite."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.errors import BundleError, OptionError

LONGEST_NAME = 200  # characters of a name, a method or a language
LONGEST_TEXT = 20_000  # of any other text
MOST_VALUES = 100_000
NAMES = ("name", "method", "source", "target", "base_fingerprint", "base_model_name_or_path")
# Characters that change how the surrounding text is displayed: embeddings, overrides, isolates and direction marks.
DIRECTION = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
LARGEST_WEIGHT = 1e6


def check_texts(path: Path, config: Mapping[str, Any]) -> None:
    """Raise BundleError on a text that is too long or contains control characters, direction marks or lone surrogates."""
    for key, text in texts_in(config):
        limit = LONGEST_NAME if key in NAMES else LONGEST_TEXT
        if len(text) > limit:
            raise BundleError(
                "{path}: {key} is a text of {count:,} characters, more than the {limit:,} that a plugin has. Do not use it.",
                path=path, key=key[:80], count=len(text), limit=limit,
            )  # fmt: skip
        odd = next((c for c in text if c in DIRECTION or (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t")), None)
        if odd is not None:
            raise BundleError(
                "{path}: {key} contains the character {code}, which is invisible or changes what is "
                "displayed. Do not use it.",
                path=path, key=key[:80].encode("ascii", "replace").decode(), code=f"U+{ord(odd):04X}",
            )  # fmt: skip


def texts_in(value: Any) -> Iterator[tuple[str, str]]:
    """(key, text) of all texts in a JSON value, including keys. Raises BundleError if there are too many values."""
    waiting, count = [("", value)], 0
    while waiting:
        key, element = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise BundleError("The plugin's card holds more than {count:,} values. Do not use it.", count=MOST_VALUES)
        if isinstance(element, str):
            yield key, element
        elif isinstance(element, float) and not math.isfinite(element):
            raise BundleError("{key} in the plugin's card is not a finite number. Do not use it.", key=key[:80])
        elif isinstance(element, Mapping):
            yield from (("key", name) for name in element)
            waiting += element.items()
        elif isinstance(element, list):
            waiting += [(key, item) for item in element]


def check_decoding(path: Path, config: Mapping[str, Any]) -> None:
    """Raise BundleError on invalid decoding defaults."""
    try:
        Decoding.from_mapping(config["decoding"])
    except OptionError as error:
        raise BundleError("{path}: its decoding defaults cannot be used. {error}", path=path, error=error) from None


def check_tensors(path: Path, folder: Path) -> None:
    """Raise BundleError if a tensor of the bundle, unpacked in `folder`, has non-finite or implausibly large numbers."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "pt") as tensors:
                for key in tensors.keys():  # noqa: SIM118 - it is no mapping
                    tensor = tensors.get_tensor(key)
                    if tensor.is_floating_point() and not bool((tensor.abs() <= LARGEST_WEIGHT).all()):
                        raise BundleError(
                            "{path}: {key} in {file} holds numbers that are not finite or larger than {most:,.0f}. Do not use it.",
                            path=path, key=key[:80], file=file.name, most=LARGEST_WEIGHT,
                        )  # fmt: skip
        except SafetensorError as error:
            raise BundleError(
                "{path}: {weights} is damaged ({error}). Get a new copy of the bundle.", path=path, weights=file.name, error=error
            ) from None
