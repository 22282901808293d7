"""What tests of methods share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def base(pair: Any) -> Any:
    """An untrained base in memory, in place of the small trained one on disk."""
    return pair.forward
