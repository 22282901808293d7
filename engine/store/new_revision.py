"""For developers: write the next revision of the schema, with what is different between the last one and the tables.

    python -m engine.store.new_revision "priority of a job"

The file is a beginning: read it, and mend what Alembic could not know.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from engine.store.schema import MIGRATIONS, newest

__all__ = ["main"]

PAGE = '''"""{title}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{last}"


def upgrade() -> None:
{body}
'''


def main(arguments: list[str]) -> int:
    """Write the file and say where."""
    if len(arguments) != 1 or not re.search(r"\w", arguments[0]):
        print(
            'Say in a few words what is new: python -m engine.store.new_revision "priority of a job"', file=sys.stderr
        )
        return 2
    title = arguments[0].strip().rstrip(".")
    last = newest()
    name = "_".join(re.findall(r"[a-z0-9]+", title.lower()))[:50]
    file = MIGRATIONS / "versions" / f"{last + 1:04d}_{name}.py"
    words = PAGE.format(
        title=title[:1].upper() + title[1:], revision=f"{last + 1:04d}", last=f"{last:04d}", body=_changes()
    )
    file.write_text(words, encoding="utf-8")
    print(file)
    return 0


def _changes() -> str:
    """The body of `upgrade`: from the schema of the last revision to the tables."""
    from alembic.autogenerate import produce_migrations, render_python_code
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine

    from engine.store.store import Store
    from engine.store.tables import Base, Utc

    def render(kind: str, thing: Any, context: Any) -> str | Literal[False]:
        return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(thing, Utc) else False

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'tailor.db'}"
        Store(url).close()
        engine = create_engine(url)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            script = produce_migrations(context, Base.metadata)
        engine.dispose()
    assert script.upgrade_ops is not None
    code = render_python_code(script.upgrade_ops, render_item=render)
    lines = [line for line in code.splitlines() if not line.strip().startswith("#")]
    return "\n".join(lines[:1] and [f"    {lines[0].strip()}", *lines[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
