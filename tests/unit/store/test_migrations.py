"""Every store there ever was opens with all its rows, and a migrated schema is the one that the program works with."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Engine

from engine.errors import InputError, StorageError
from engine.store import Store, schema
from engine.store.database import open_engine, parse
from engine.store.schema import MIGRATIONS, newest
from engine.store.tables import Base
from tests.databases import Postgres

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
FIRST = {"schema_version", "project", "corpus", "phrase_set", "job", "plugin", "comparison", "worker"}
LATER = sorted({
    "api_token", "comparison_line", "comparison_sheet", "default_plugin", "job_usage", "plugin_tag", "rating_answer",
    "rating_rater", "rating_round",
})  # fmt: skip


def golden(file: Path, without: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    """The store of release 0.1.0 as a file; some of its tables can be left out. Returns its address."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript((GOLDEN / "store-1" / "tailor.sql").read_text(encoding="utf-8"))
        connection.execute("PRAGMA foreign_keys = OFF")
        for name in without:
            connection.execute(f"DROP TABLE {name}")
        connection.commit()
    return f"sqlite:///{file}"


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the tables of release 0.1.0, in the columns that these had then."""
    with contextlib.closing(sqlite3.connect(":memory:")) as old, contextlib.closing(sqlite3.connect(file)) as now:
        old.executescript((GOLDEN / "store-1" / "tailor.sql").read_text(encoding="utf-8"))
        names = [row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        there = {row[0] for row in now.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        result = {}
        for name in names:
            if name in ("schema_version", "sqlite_sequence") or name not in there:
                continue
            columns = ", ".join(f'"{row[1]}"' for row in old.execute(f"PRAGMA table_info({name})"))
            result[name] = now.execute(f"SELECT {columns} FROM {name} ORDER BY 1, 2").fetchall()
        return result


def differences(engine: Engine) -> list[object]:
    """What Alembic finds between the database and the models."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Base.metadata))


def test_a_new_store_has_the_schema_of_the_models(empty_url: str) -> None:
    store = Store(empty_url)
    assert differences(store._engine) == []
    with store.read() as session:
        assert session.scalar(text("SELECT version_num FROM alembic_version")) == f"{newest():04d}"
        assert session.scalar(text("SELECT version FROM schema_version")) == newest()


def test_a_made_schema_and_a_migrated_one_are_the_same_on_sqlite(tmp_path: Path) -> None:
    """Also what Alembic does not compare: numbers that are never given again, names of constraints, what a delete takes."""
    created = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    Base.metadata.create_all(created)
    Store(f"sqlite:///{tmp_path / 'new.db'}").close()
    Store(golden(tmp_path / "old.db")).close()

    def shape(name: str) -> dict[str, object]:
        there = inspect(create_engine(f"sqlite:///{tmp_path / name}"))
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as file:
            words = dict(file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        return {
            table: (
                {(column["name"], str(column["type"]), column["nullable"]) for column in there.get_columns(table)},
                sorted((str(key["name"]), str(key["options"])) for key in there.get_foreign_keys(table)),
                sorted(str(key["name"]) for key in there.get_unique_constraints(table)),
                sorted((str(index["name"]), str(index["column_names"])) for index in there.get_indexes(table)),
                "AUTOINCREMENT" in words[table],
            )
            for table in there.get_table_names()
            if table != "alembic_version"
        }

    assert shape("new.db") == shape("made.db")
    assert shape("old.db") == shape("made.db")


@pytest.mark.parametrize("without", [set(), set(LATER), *({name} for name in LATER if not name.startswith("rating"))])
def test_a_store_of_before_the_revisions_is_adopted_with_all_its_rows(tmp_path: Path, without: set[str]) -> None:
    file = tmp_path / "tailor.db"
    url = golden(file, without)
    before = rows(file)
    assert set(before) == (FIRST | set(LATER)) - without - {"schema_version"}
    store = Store(url)
    after = rows(file)
    assert {name: after[name] for name in before} == before
    assert all(after[name] == [] for name in without)
    assert differences(store._engine) == []
    project = store.projects.list()[0]
    assert project.name == "鲁迅 Lu Xun"
    assert [row.state for row in store.jobs.list()] == ["queued", "failed", "succeeded"]
    assert store.plugins.list(project.id)[0].metrics == {"bleu": 21.3}
    if not without:
        assert store.tags.of(project.id) == {1: ["style", "文学"]}
        assert store.tokens.list()[0].characters == 1234
    assert store.projects.create("New", "en", "zh", "base").id == 3, "the number of a deleted project is not given again"
    assert store.jobs.claim("w") is not None
    store.close()
    again = Store(url)
    assert len(again.projects.list()) == 2


def test_an_index_that_is_missing_is_added(tmp_path: Path) -> None:
    file = tmp_path / "tailor.db"
    url = golden(file)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP INDEX uq_job_running_project")
    assert differences(Store(url)._engine) == []


def test_the_revisions_are_one_chain_in_the_order_of_their_numbers() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(MIGRATIONS))
    chain = list(scripts.walk_revisions())[::-1]
    assert [script.revision for script in chain] == [f"{number:04d}" for number in range(1, newest() + 1)]
    for script in chain:
        assert Path(script.path).name.startswith(f"{script.revision}_")
        assert script.doc.strip(), f"{script.path} says what it does in its first line"


LATER_REVISION = '''"""A column for the test."""

import sqlalchemy as sa
from alembic import op

revision = "{next:04d}"
down_revision = "{last:04d}"


def upgrade() -> None:
    op.add_column("project", sa.Column("colour", sa.Text(), nullable=False, server_default="blue"))
    with op.batch_alter_table("corpus", table_kwargs={{"sqlite_autoincrement": True}}) as corpus:
        corpus.alter_column("name", new_column_name="title")
    {more}
'''


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One revision more than there are; it changes tables, one of them by making it anew."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    for file in (MIGRATIONS / "versions").glob("*.py"):
        (folder / "versions" / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    added = folder / "versions" / f"{newest() + 1:04d}_later.py"
    added.write_text(LATER_REVISION.format(next=newest() + 1, last=newest(), more="pass"), encoding="utf-8")
    monkeypatch.setattr(schema, "MIGRATIONS", folder)
    return added


def upgraded(url: str) -> Path | None:
    engine = open_engine(parse(url))
    selected = schema.upgrade(engine)
    engine.dispose()
    return selected


def test_a_copy_is_kept_before_tables_change_and_nothing_is_lost(tmp_path: Path, later: Path) -> None:
    file = tmp_path / "tailor.db"
    before_url = golden(file)
    before = rows(file)
    selected = upgraded(before_url)
    assert selected is not None
    assert selected.parent == tmp_path
    assert rows(selected) == before, "the copy is the store as it was"
    with contextlib.closing(sqlite3.connect(file)) as now:
        assert now.execute("SELECT name, colour FROM project").fetchall() == [("鲁迅 Lu Xun", "blue")]
        assert now.execute("SELECT title FROM corpus").fetchall() == [("呐喊.txt",)]
        assert now.execute("SELECT count(*) FROM phrase_set").fetchone() == (1,), "what belongs to a remade table stays"
    assert upgraded(before_url) is None, "nothing more to do"


def test_a_revision_that_fails_leaves_the_store_as_it_was(tmp_path: Path, later: Path) -> None:
    later.write_text(later.read_text(encoding="utf-8").replace("    pass", '    raise ValueError("no")'), encoding="utf-8")
    file = tmp_path / "tailor.db"
    url = golden(file)
    before = rows(file)
    with pytest.raises(ValueError, match="no"):
        upgraded(url)
    assert rows(file) == before
    with contextlib.closing(sqlite3.connect(file)) as now:
        assert "colour" not in [row[1] for row in now.execute("PRAGMA table_info(project)")]
        assert now.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'").fetchall() == []


def test_without_room_for_the_copy_nothing_is_changed(tmp_path: Path, later: Path) -> None:
    file = tmp_path / "tailor.db"
    url = golden(file)
    (tmp_path / f"tailor.db.before-{2:04d}.part").mkdir()
    before = rows(file)
    with pytest.raises(StorageError, match=r"copy that is kept before could not be written .*nothing was changed"):
        upgraded(url)
    assert rows(file) == before


def test_a_store_made_by_a_newer_program_is_refused(store_url: str) -> None:
    store = Store(store_url)
    with store.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :new"), {"new": f"{newest() + 1:04d}"})
        session.execute(text("UPDATE schema_version SET version = :new"), {"new": newest() + 1})
    store.close()
    with pytest.raises(InputError, match=rf"newer Tailor MT \(schema {newest() + 1}, .*Update Tailor MT"):
        Store(store_url)


@pytest.mark.slow
def test_many_processes_may_bring_a_store_up_to_date_at_once(empty_url: str, tmp_path: Path) -> None:
    url = golden(tmp_path / "empty.db") if empty_url.startswith("sqlite") else empty_url
    count = 1 if empty_url.startswith("sqlite") else 0
    code = "import sys; from engine.store import Store; s = Store(sys.argv[1]); s.projects.create('p', 'en', 'zh', 'b')"
    running = [subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate(timeout=300)[1].decode() for process in running]
    assert errors == [""] * 3
    assert len(Store(url).projects.list()) == 3 + count


def test_an_upgrade_on_postgresql_is_all_or_nothing(postgres: Postgres, later: Path) -> None:
    url = postgres.database("tailor_template")
    good = later.read_text(encoding="utf-8")
    later.write_text(good.replace("    pass", '    raise ValueError("no")'), encoding="utf-8")
    with pytest.raises(ValueError, match="no"):
        upgraded(url)
    engine = open_engine(parse(url))
    assert "colour" not in [column["name"] for column in inspect(engine).get_columns("project")]
    later.write_text(good, encoding="utf-8")
    assert upgraded(url) is None
    assert "colour" in [column["name"] for column in inspect(engine).get_columns("project")]
    engine.dispose()
    postgres.drop(url)


def test_every_revision_is_written_so_that_an_older_program_can_go_on() -> None:
    """New columns that must hold something say what, for rows that a program writes that does not know them."""
    for file in sorted((MIGRATIONS / "versions").glob("0*.py"))[1:]:
        for line in re.findall(r"add_column\(.*", file.read_text(encoding="utf-8")):
            assert "nullable=False" not in line or "server_default" in line, f"{file.name}: {line}"
