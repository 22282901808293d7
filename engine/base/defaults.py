"""The base's decoding defaults: a key in its generation_config.json, by direction, chosen on held-out text.

    "decoding_defaults": {"en-zh": {"beam": 4, "length_penalty": 1.2}, "zh-en": {"beam": 4, "length_penalty": 1.0}}

Other values in that file (such as num_beams of models from the hub) are ignored: plugins were tuned and measured without
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.base.decoding_options import Decoding
from engine.base.files import read_json
from engine.core.atomic_files import write_json
from engine.core.json_object import Json
from engine.errors import ModelError, OptionError

FILE, KEY = "generation_config.json", "decoding_defaults"
NAMES = ("beam", "length_penalty")  # settings of `Decoding` for which a base may have defaults


def read_defaults(folder: Path, source: str, target: str) -> Json:
    """The `Decoding` settings that the base defines for this direction, if any. Raises ModelError on invalid values."""
    stored = _read(folder).get(KEY)
    values = stored.get(f"{source}-{target}") if isinstance(stored, dict) else None
    settings = {name: values[name] for name in NAMES if name in values} if isinstance(values, dict) else {}
    try:
        Decoding.from_mapping(settings)
    except OptionError as error:
        raise ModelError(
            "{folder}, {key} of {source}-{target}: {error}",
            folder=folder / FILE, key=KEY, source=source, target=target, error=error,
        ) from None  # fmt: skip
    return settings


def write_defaults(folder: Path, chosen: Mapping[str, Mapping[str, Any]]) -> None:
    """Make {"en-zh": {"beam": 4, …}, …} the base's defaults; other directions keep theirs. Raises ModelError, StorageError."""
    config = _read(folder)
    stored = config.get(KEY)
    config[KEY] = {**(stored if isinstance(stored, dict) else {}), **{pair: dict(values) for pair, values in chosen.items()}}
    write_json(folder / FILE, config, "the base's decoding defaults")


def _read(folder: Path) -> Json:
    file = folder / FILE
    return read_json(file) if file.exists() else {}
