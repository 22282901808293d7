"""Alembic's environment for `alembic revision --autogenerate`: a new store of the last revision beside the tables."""

from __future__ import annotations

import tempfile
from typing import Any, Literal

from alembic import context
from sqlalchemy import create_engine

from engine.store import Store
from engine.store.tables import Base, Utc


def render(kind: str, thing: Any, _: Any) -> str | Literal[False]:
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(thing, Utc) else False


with tempfile.TemporaryDirectory() as folder:
    url = f"sqlite:///{folder}/tailor.db"
    Store(url).close()
    with create_engine(url).connect() as connection:
        context.configure(connection, target_metadata=Base.metadata, compare_type=True, render_item=render)
        context.run_migrations()
