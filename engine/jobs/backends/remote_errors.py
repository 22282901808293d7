"""Serialising errors between machines as JSON: the class name and the message."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from typing import Any

from engine import errors
from engine.errors import TailorError
from engine.messages import pack, unpack


def describe_error(error: Exception, where: str) -> dict[str, Any]:
    """Serialise an error for `raise_remote_error`."""
    if isinstance(error, TailorError):
        return pack({"error": type(error).__name__, "sentence": error.message})
    last = "".join(traceback.format_exception(error)).strip()
    return {"error": type(error).__name__, "sentence": f"{error} ({where})", "trace": last}


def raise_remote_error(error: Mapping[str, Any]) -> None:
    """Raise an error of another node: with the same class if it is in `engine.errors`, else as TailorError.

    Errors that are no TailorErrors become a RuntimeError with the original traceback.
    """
    if "trace" in error:
        raise RuntimeError(f"{error['error']}: {error['sentence']}\n{error['trace']}")
    kind = getattr(errors, error["error"], TailorError)
    is_tailor_error = inspect.isclass(kind) and issubclass(kind, TailorError)
    raise (kind if is_tailor_error else TailorError)(unpack(error)["sentence"])
