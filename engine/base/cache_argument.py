"""The keyword under which transformers modules take their key-value cache, which changed within release 5."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

NAMES = ("cache", "past_key_values")  # from 5.24 on, and before


def cache_argument(module: Any) -> str:
    """The keyword for the cache in the forward of `module`. Raises TypeError if it takes none."""
    kind: Any = type(module)
    return _of(kind)


@cache
def _of(kind: Any) -> str:
    parameters = inspect.signature(kind.forward).parameters
    for name in NAMES:
        if name in parameters:
            return name
    raise TypeError(f"{kind.__name__} takes no key-value cache.")
