"""What a bundle says and holds, looked at before it is used: texts that show as they are, settings that exist, finite numbers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.errors import BundleError, OptionError

LONGEST_NAME = 200  # characters of a name, a method, a language
LONGEST_TEXT = 20_000  # of any other text
MOST_VALUES = 100_000
NAMES = ("name", "method", "source", "target", "base_fingerprint", "base_model_name_or_path")
# Characters that change how the text around them is shown: embeddings, overrides, isolates and marks of direction.
DIRECTION = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
LARGEST_WEIGHT = 1e6


def check_texts(path: Path, config: Mapping[str, Any]) -> None:
    """Raises BundleError on a text that is too long, or that holds control characters, marks of direction or half characters."""
    for key, text in texts_in(config):
        limit = LONGEST_NAME if key in NAMES else LONGEST_TEXT
        if len(text) > limit:
            raise BundleError(
                "{path}: {key} is a text of {count:,} characters, more than the {limit:,} that a plugin has. Do not use it.",
                path=path, key=key[:80], count=len(text), limit=limit,
            )  # fmt: skip
        odd = next(
            (c for c in text if c in DIRECTION or (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t")), None
        )
        if odd is not None:
            raise BundleError(
                "{path}: {key} contains the character {code}, which is invisible or changes what is "
                "displayed. Do not use it.",
                path=path, key=key[:80].encode("ascii", "replace").decode(), code=f"U+{ord(odd):04X}",
            )  # fmt: skip


def texts_in(value: Any) -> Iterator[tuple[str, str]]:
    """(key, text) of all texts in a value of JSON, keys among them. Raises BundleError where there is no end of them."""
    waiting, count = [("", value)], 0
    while waiting:
        key, one = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise BundleError("The plugin's card holds more than {count:,} values. Do not use it.", count=MOST_VALUES)
        if isinstance(one, str):
            yield key, one
        elif isinstance(one, float) and not math.isfinite(one):
            raise BundleError("{key} in the plugin's card is not a finite number. Do not use it.", key=key[:80])
        elif isinstance(one, Mapping):
            yield from (("key", name) for name in one)
            waiting += one.items()
        elif isinstance(one, list):
            waiting += [(key, item) for item in one]


def check_decoding(path: Path, config: Mapping[str, Any]) -> None:
    """Raises BundleError on decoding defaults that there are not."""
    try:
        Decoding.from_mapping(config["decoding"])
    except OptionError as error:
        raise BundleError("{path}: its decoding defaults cannot be used. {error}", path=path, error=error) from None


def check_tensors(path: Path, folder: Path) -> None:
    """Raises BundleError on a number in the bundle's tensors, unpacked in `folder`, that is not finite or beyond all weights."""
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
                "{path}: {weights} is damaged ({error}). Get a new copy of the bundle.",
                path=path,
                weights=file.name,
                error=error,
            ) from None
