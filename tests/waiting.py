"""Waiting for a condition, in place of sleeping for a time that another machine may need more of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["until"]


def until(condition: Callable[[], Any], seconds: float = 300) -> Any:
    """What `condition` gives as soon as that is something; fails after so long, which is for a machine that is very busy."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"waited for more than {seconds:.0f} s"
        time.sleep(0.02)
    return result
