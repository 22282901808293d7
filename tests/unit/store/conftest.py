"""What tests of the store share."""

from __future__ import annotations

import pytest

from engine.store import Store


@pytest.fixture
def store(store_url: str) -> Store:
    """An empty store, on SQLite and on PostgreSQL."""
    return Store(store_url)
