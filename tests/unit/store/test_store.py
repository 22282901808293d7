"""What the rest of the program relies on: rows come back as they went in, and the file opens or says why not."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.errors import InputError, MissingError, StorageError
from engine.store import Store
from engine.store.tables import Base


@pytest.fixture
def url(store_url: str, tmp_path: Path) -> str:
    return store_url.replace(str(tmp_path), str(tmp_path / "new"))  # a file in a folder that is not there yet


@pytest.fixture
def store(url: str) -> Store:
    return Store(url)


def test_project_comes_back_as_it_went_in(store: Store, url: str) -> None:
    project = store.projects.create("  鲁迅 Lu Xun ", source="en", target="zh", base="/models/en-zh")
    assert project.name == "鲁迅 Lu Xun"
    assert project.created.tzinfo == datetime.UTC
    assert abs((datetime.datetime.now(datetime.UTC) - project.created).total_seconds()) < 30
    assert Store(url).projects.get(project.id) == project  # another process sees the same


def test_rows_cannot_be_changed_in_place(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    with pytest.raises(dataclasses.FrozenInstanceError):
        project.name = "b"  # type: ignore[misc]


def test_update_changes_only_what_may_change(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    changed = store.projects.update(project.id, name="b")
    assert (changed.name, changed.base) == ("b", "base")
    assert changed.updated > project.updated
    assert changed.created == project.created
    with pytest.raises(TypeError, match="created of a project cannot be changed"):
        store.projects.update(project.id, created=project.created)


def test_lists_are_newest_first_and_by_project(store: Store) -> None:
    project, other = (store.projects.create(name, "en", "zh", "base") for name in "ab")
    assert [row.id for row in store.projects.list()] == [other.id, project.id]
    store.corpora.create(project.id, "x")
    second = store.corpora.create(project.id, "y")
    store.corpora.create(other.id, "z")
    assert [row.name for row in store.corpora.list(project.id)] == ["y", "x"]
    assert len(store.corpora.list()) == 3
    ready = store.corpora.update(second.id, state="ready", kept=12, skipped={"too long": 3}, report={"kept": 12})
    assert store.corpora.list(project.id)[0] == ready
    assert ready.skipped == {"too long": 3}


def test_phrase_sets_replace_the_one_for_the_same_file(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    corpus = store.corpora.create(project.id, "x")
    store.phrase_sets.create(corpus.id, "p.jsonl", "stanza", 10)
    store.phrase_sets.create(corpus.id, "p.jsonl", "stanza", 11)
    store.phrase_sets.create(corpus.id, "q.jsonl", "statistical", 4)
    assert [(row.path, row.count) for row in store.phrase_sets.list(corpus.id)] == [("q.jsonl", 4), ("p.jsonl", 11)]


def test_plugins_and_comparisons(store: Store, tmp_path: Path) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    bundle = tmp_path / "p.zip"
    job = store.jobs.enqueue("customize", {}, project_id=project.id)
    plugin = store.plugins.create(project.id, "p", method="memory_adapter", path=str(bundle), metrics={"bleu": 21.3}, job_id=job.id)
    assert not plugin.exists
    bundle.write_bytes(b"zip")
    assert store.plugins.get(plugin.id).exists
    assert store.plugins.list(job_id=job.id) == [plugin]
    rows = [{"source": "I see.", "vanilla": "我明白了。", "customized": "我懂了。"}]
    comparison = store.comparisons.create(project.id, "first", rows)
    assert store.comparisons.get(comparison.id).rows == rows


def test_deleting_a_project_takes_its_rows_along_and_its_number_is_not_given_again(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    corpus = store.corpora.create(project.id, "x")
    store.phrase_sets.create(corpus.id, "p.jsonl", "stanza", 10)
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)
    store.plugins.create(project.id, "p", method="m", path="p.zip", job_id=job.id)
    store.comparisons.create(project.id, "c", [])
    store.projects.delete(project.id)
    for left in (store.corpora, store.phrase_sets, store.jobs, store.plugins, store.comparisons):
        assert left.list() == []  # type: ignore[attr-defined]
    assert store.projects.create("b", "en", "zh", "base").id > project.id
    assert store.jobs.enqueue("prepare", {}).id > job.id


def test_what_is_gone_is_said_in_a_sentence(store: Store) -> None:
    with pytest.raises(InputError, match="There is no project 7: it may have been deleted"):
        store.projects.get(7)
    with pytest.raises(InputError, match="deleted in the meantime"):
        store.corpora.create(7, "x")
    with pytest.raises(InputError, match="A project needs a name"):
        store.projects.create("  ", "en", "zh", "base")


def test_sqlite_is_set_up_for_several_processes(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'tailor.db'}").read() as session:
        pragma = {
            name: session.connection().exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert pragma == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 15000}


def test_constraints_have_names() -> None:
    for table in Base.metadata.tables.values():
        assert all(constraint.name for constraint in table.constraints), table.name


def test_addresses_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an SQLAlchemy URL"):
        Store("tailor.db")
    with pytest.raises(InputError, match="not a database that Tailor MT supports"):
        Store("oracles://x/y")
    text = tmp_path / "samples.txt"
    text.write_text("This is a text, not a database. " * 50, encoding="utf-8")
    with pytest.raises(InputError, match="damaged or no database"):
        Store(f"sqlite:///{text}")
    with pytest.raises(StorageError, match="cannot be made"):
        Store(f"sqlite:///{text}/folder/tailor.db")


def test_the_password_of_the_database_is_never_shown() -> None:
    with pytest.raises((MissingError, StorageError)) as caught:
        Store("postgresql://me:hidden-word@127.0.0.1:1/tailor")
    assert "hidden-word" not in str(caught.value)


def test_many_threads_may_write_at_once(store: Store) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            row = store.projects.create(f"p{number}", "en", "zh", "base")
            store.projects.update(row.id, name=row.name + "!")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sum(row.name.endswith("!") for row in store.projects.list()) == 160


def test_workers_are_seen_while_they_beat(store: Store) -> None:
    store.workers.beat("here:1", "here", 1)
    store.workers.beat("here:1", "here", 1, job_id=5)
    assert [(row.name, row.job_id) for row in store.workers.list()] == [("here:1", 5)]
    assert store.workers.list(within=-1) == []
    store.workers.remove("here:1")
    assert store.workers.list(within=None) == []


def test_the_engine_does_not_load_the_database_layer_until_a_store_is_opened() -> None:
    before = "import sys, engine.store as s; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", before + "; s.Store; assert 'sqlalchemy' in sys.modules"], check=True)


def test_fifty_may_ask_at_once(store: Store) -> None:
    """More threads than connections: they wait for each other, and all are answered."""
    project = store.projects.create("p", "en", "zh", "base")
    start = threading.Barrier(50)

    def ask(number: int) -> int:
        start.wait()
        store.projects.update(project.id, name=f"p{number}")
        return len(store.projects.list())

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(ask, range(50))) == [1] * 50


def test_a_store_whose_connections_are_all_taken_says_so(store: Store) -> None:
    store._engine.pool._timeout = 0.2  # type: ignore[attr-defined]
    with contextlib.ExitStack() as held:
        for _ in range(30):
            held.enter_context(store._engine.connect())
        with pytest.raises(StorageError, match="more requests than it can answer"):
            store.projects.list()
    assert store.projects.list() == []
