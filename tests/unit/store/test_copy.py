"""`tailormt store`: what it says, and a whole store that moves from one database to another and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from engine.errors import InputError
from engine.store import Store
from engine.store.copy import copy_store
from engine.store.schema import newest
from engine.store.tables import Base
from tests.conftest import Ran
from tests.databases import Postgres
from tests.golden.make_store import fill


def contents(url: str) -> dict[str, list[Any]]:
    """All rows of all tables, but for the workers', which come and go."""
    store = Store(url)
    with store._engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in Base.metadata.sorted_tables
        }


@pytest.fixture
def filled(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'full.db'}"
    store = Store(url)
    fill(store)
    store.workers.remove("here:1:aa")
    store.close()
    return url


def test_a_store_moves_to_the_other_database_and_back_with_every_row(filled: str, postgres: Postgres, tmp_path: Path) -> None:
    there, back = postgres.database(), f"sqlite:///{tmp_path / 'back.db'}"
    counts = copy_store(filled, there)
    assert counts["project"] == 1
    assert counts["comparison_line"] == 2
    assert contents(there) == contents(filled)
    copy_store(there, back)
    assert contents(back) == contents(filled)
    for url in (there, back):
        store = Store(url)
        assert store.projects.create("New", "en", "zh", "b").id == 3, "the number of a deleted project is not given again"
        assert store.jobs.enqueue("prepare", {}).id == 4
        assert store.corpora.create(2, "more").id == 2
        claimed = [store.jobs.claim("w"), store.jobs.claim("w")]
        assert "best" in [row.arguments.get("budget") for row in claimed if row], "the queue goes on where it was"
        store.close()
    postgres.drop(there)


def test_postgresql_s_own_dump_brings_every_row_back(filled: str, postgres: Postgres) -> None:
    url, again = postgres.database(), postgres.database()
    copy_store(filled, url)
    dump = str(postgres.folder / "tailor.dump")
    postgres.program("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={url}")
    postgres.program("pg_restore", "--clean", "--if-exists", "--exit-on-error", f"--dbname={again}", dump)
    assert contents(again) == contents(filled)
    assert Store(again).projects.create("New", "en", "zh", "b").id == 3
    postgres.drop(url)
    postgres.drop(again)


def test_what_cannot_be_copied_is_said_and_nothing_is_written(filled: str, tmp_path: Path, empty_url: str) -> None:
    with pytest.raises(InputError, match="cannot be copied to itself"):
        copy_store(filled, filled)
    full = f"sqlite:///{tmp_path / 'other.db'}"
    source, target = Store(filled), Store(full)
    other = target.projects.create("Mine", "en", "zh", "b")
    with pytest.raises(InputError, match=r"already contains rows .*Specify an empty database"):
        copy_store(filled, full)
    assert target.projects.list() == [other]
    source.workers.beat("here:2:bb", "here", 2)
    with pytest.raises(InputError, match=r"A worker serves .* on here\. Stop the studio and all workers first"):
        copy_store(filled, empty_url)
    assert Store(empty_url).projects.list() == []
    assert copy_store(filled, empty_url, live=True)["project"] == 1, "a backup may be made meanwhile"


def test_a_character_that_postgresql_cannot_hold_does_not_stop_the_copy(filled: str, postgres: Postgres) -> None:
    source = Store(filled)
    project = source.projects.list()[0]
    source.comparisons.create(project.id, "a\0b", [{"source": "c\0d"}])
    url = postgres.database()
    copy_store(filled, url)
    row = Store(url).comparisons.list()[0]
    assert (row.title, row.rows) == ("a\ufffdb", [{"source": "c\0d"}])
    postgres.drop(url)


def test_status_upgrade_and_copy_from_the_command_line(
    tailormt: Any, home: Path, tmp_path: Path, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: Ran = tailormt("store", "status", "--json")
    data = json.loads(ran.out)
    assert (data["schema"], data["rows"], data["pending"][0]["revision"]) == (0, {}, "0001")
    assert not (home / "tailor.db").exists(), "looking makes nothing"
    assert f"The store was made: schema {newest()}" in tailormt("store", "upgrade").out
    assert f"up to date: schema {newest()}" in tailormt("store", "upgrade").out
    assert tailormt("store", "copy", "--to", filled).sentence.startswith("The store at sqlite:///")
    monkeypatch.setenv("TAILORMT_DATABASE_URL", filled)
    text = tailormt("store", "copy", "--to", f"sqlite:///{tmp_path / 'moved.db'}", "--quiet")
    assert text.code == 0, text.err
    assert "rows were copied" in text.out
    assert contents(f"sqlite:///{tmp_path / 'moved.db'}") == contents(filled)
    output = tailormt("store", "status").out
    assert f"Schema: {newest()}; this program makes {newest()}" in output
    assert "comparison_line" in output


def test_passwords_are_not_shown(tailormt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILORMT_DATABASE_URL", "postgresql://me:hidden-word@127.0.0.1:1/tailor")
    ran: Ran = tailormt("store", "status")
    assert "hidden-word" not in ran.sentence
    assert "cannot be reached" in ran.sentence
