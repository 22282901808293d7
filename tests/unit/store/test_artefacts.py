"""Artefacts: what was published comes back byte for byte, in a folder and in an S3 store, whatever happens in between."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.atomic_files import atomic_write
from engine.core.settings import Settings
from engine.corpora.overrides import DECISIONS_FILE
from engine.errors import InputError, StorageError
from engine.jobs import enqueue
from engine.jobs.handlers.documents import PARTIAL
from engine.phrases.exclusions import EXCLUSIONS_FILE
from engine.store import ProjectRow, Store
from engine.store.sharing import BlobStore, WorkspaceSync, before_queueing, share_of, working
from engine.store.sharing.blob_store import APPENDED, DamagedError
from engine.store.sharing.garbage_collection import collect, listing, verify
from engine.store.sharing.sync import Sharing
from tests.conftest import Ran
from tests.databases import Postgres
from tests.s3 import BUCKET, Server, s3_server

BIG = random.Random(0).randbytes(5 << 20)  # more than is sent in one piece


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    with s3_server() as result:
        yield result


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The settings that name a store: of each kind, empty."""
    if request.param == "folder":
        return {"artefacts": str(tmp_path / "shared")}
    result = request.getfixturevalue("server")
    return {"artefacts": f"s3://{BUCKET}/{tmp_path.name}", "artefacts_endpoint": result.url}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path / 'tailor.db'}")


@pytest.fixture
def project(store: Store) -> ProjectRow:
    return store.projects.create("Rain", "en", "zh", "en-zh")


Machine = Callable[[str], Settings]


@pytest.fixture
def machine(place: dict[str, str], tmp_path: Path) -> Machine:
    """The settings of a machine with a data folder of its own; all use one database."""
    return lambda name: Settings(home=str(tmp_path / name), database_url=f"sqlite:///{tmp_path / 'tailor.db'}", **place)


def tree(settings: Settings, store: Store, project: ProjectRow) -> WorkspaceSync:
    name = f"projects/{project.id}"
    blobs = BlobStore(settings.artefacts, endpoint=settings.artefacts_endpoint) if settings.artefacts else None
    return WorkspaceSync(settings.home_dir / name, name, store, blobs, project.id)


def files(folder: Path) -> dict[str, bytes]:
    result = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in result}


def fill(folder: Path, **more: bytes) -> Path:
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    (folder / "samples" / "a.txt").write_text("雨停了。\n", encoding="utf-8")
    (folder / "memory.safetensors").write_bytes(BIG)
    (folder / "steps.json").write_text('{"samples": "x"}', encoding="utf-8")
    for name, data in more.items():
        (folder / name).write_bytes(data)
    return folder


def write(path: Path, data: bytes) -> None:
    """As all of the program writes: another file takes the place of the old one."""
    with atomic_write(path, "a test's file") as temporary:
        temporary.write_bytes(data)


def blob(settings: Settings, data: bytes) -> Path:
    name = hashlib.sha256(data).hexdigest()
    return Path(settings.artefacts, "blobs", name[:2], name)


# -- from one machine to another


def test_what_one_machine_publishes_another_has(machine: Machine, store: Store, project: ProjectRow) -> None:
    workspace, other = tree(machine("one"), store, project), tree(machine("other"), store, project)
    fill(workspace.folder)
    assert workspace.push() == 3
    assert workspace.push() == 0, "nothing is published twice"
    assert not workspace.changed()
    assert other.pull() == 3
    assert files(other.folder) == files(workspace.folder)
    assert other.pull() == 0
    (other.folder / "summary.json").write_bytes(b"{}")
    (other.folder / "samples" / "a.txt").unlink()
    assert other.push() == 2
    assert workspace.pull() == 2
    assert files(workspace.folder) == files(other.folder)
    assert sorted(files(workspace.folder)) == ["memory.safetensors", "steps.json", "summary.json"]


def test_what_changed_here_is_not_overwritten(machine: Machine, store: Store, project: ProjectRow) -> None:
    workspace, other = tree(machine("one"), store, project), tree(machine("other"), store, project)
    fill(workspace.folder).joinpath("labels.json").write_bytes(b"1")
    workspace.push()
    other.pull()
    write(workspace.folder / "labels.json", b"one")
    (workspace.folder / "corpus.jsonl").write_bytes(b"new")
    workspace.push()
    write(other.folder / "labels.json", b"other")
    assert other.pull() == 1
    assert files(other.folder)["labels.json"] == b"other"
    assert files(other.folder)["corpus.jsonl"] == b"new"
    other.push()
    workspace.pull()
    assert files(workspace.folder) == files(other.folder)
    assert files(workspace.folder)["labels.json"] == b"other", "the later publication holds"


def test_files_that_are_only_there_for_a_while_stay_here(machine: Machine, store: Store, project: ProjectRow) -> None:
    workspace = tree(machine("one"), store, project)
    fill(workspace.folder, **{".lock": b"", "a.tmp": b"", ".hidden": b""})
    (workspace.folder / "checkpoint.tmp").mkdir()
    (workspace.folder / "checkpoint.tmp" / "state.json").write_bytes(b"half")
    (workspace.folder / "link").symlink_to("/etc/passwd")
    assert workspace.push() == 3


@pytest.mark.slow
def test_two_workers_publish_the_same_content(machine: Machine, store: Store) -> None:
    rows = [store.projects.create(f"p{i}", "en", "zh", "x") for i in range(4)]
    trees = [tree(machine(f"m{row.id}"), store, row) for row in rows]
    for workspace in trees:
        fill(workspace.folder)
    threads = [threading.Thread(target=workspace.push) for workspace in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settings = machine("m1")
    result = listing(settings, store)
    assert result["blobs"] == 3, "one blob for one content"
    assert [row["files"] for row in result["workspaces"]] == [3] * 4
    assert verify(settings, store) == []


# -- checksums and collecting


def test_a_damaged_blob_is_never_used(machine: Machine, store: Store, project: ProjectRow) -> None:
    settings = machine("one")
    workspace, other = tree(settings, store, project), tree(machine("other"), store, project)
    fill(workspace.folder)
    workspace.push()
    name = hashlib.sha256(BIG).hexdigest()
    assert workspace.blobs is not None
    if workspace.blobs.local:
        position = blob(settings, BIG)
        position.unlink()
        position.write_bytes(BIG[:-1] + bytes([BIG[-1] ^ 1]))
    else:
        workspace.blobs._system.pipe_file(workspace.blobs.location(name), BIG[:-1] + bytes([BIG[-1] ^ 1]))
    with pytest.raises(DamagedError, match=r"memory\.safetensors .* is damaged"):
        other.pull()
    assert "memory.safetensors" not in files(other.folder)
    assert [(row["where"], row["problem"]) for row in verify(settings, store)] == [
        (f"projects/{project.id}/memory.safetensors", "changed")
    ]
    workspace.blobs.remove(name)
    assert [row["problem"] for row in verify(settings, store)] == ["gone"]
    with pytest.raises(StorageError, match="is missing from"):
        other.pull()


def test_collecting_takes_what_nothing_names_and_is_old(machine: Machine, store: Store, project: ProjectRow) -> None:
    settings = machine("one")
    workspace = tree(settings, store, project)
    fill(workspace.folder)
    workspace.push()
    write(workspace.folder / "memory.safetensors", b"another")
    workspace.push()
    assert collect(settings, store).young == 1, "it may be on its way to be named"
    would = collect(settings, store, dry_run=True, hours=0)
    assert (would.blobs, would.bytes) == (1, len(BIG))
    assert collect(settings, store, dry_run=True, hours=0).blobs == 1, "a dry run removes nothing"
    assert collect(settings, store, hours=0).blobs == 1
    assert verify(settings, store) == []
    store.projects.delete(project.id)
    assert collect(settings, store, hours=0).blobs == 3, "a project's artefacts go with it"
    assert listing(settings, store)["blobs"] == 0


def test_a_folder_costs_no_copies(store: Store, project: ProjectRow, tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"), artefacts=str(tmp_path / "shared"))
    workspace = tree(settings, store, project)
    fill(workspace.folder).joinpath("metrics.jsonl").write_bytes(b"1\n")
    workspace.push()
    assert blob(settings, BIG).samefile(workspace.folder / "memory.safetensors")
    assert not blob(settings, b"1\n").samefile(workspace.folder / "metrics.jsonl"), "it grows in place"
    with (workspace.folder / "metrics.jsonl").open("ab") as file:
        file.write(b"2\n")
    workspace.push()
    assert verify(settings, store) == []


def test_files_that_grow_in_place_are_known() -> None:
    assert {DECISIONS_FILE, EXCLUSIONS_FILE, PARTIAL, "metrics.jsonl"} == set(APPENDED)


def test_in_place_nothing_is_copied_and_damage_is_noticed(store: Store, project: ProjectRow, tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    workspace = tree(settings, store, project)
    fill(workspace.folder)
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)
    with working(settings, store, job):
        (workspace.folder / "corpus.jsonl").write_bytes(b"made")
    assert listing(settings, store)["workspaces"][0]["files"] == 4
    assert verify(settings, store) == []
    (workspace.folder / "corpus.jsonl").unlink()
    write(workspace.folder / "memory.safetensors", b"x" + BIG[1:])
    assert [(row["where"], row["problem"]) for row in verify(settings, store)] == [
        (f"projects/{project.id}/corpus.jsonl", "gone"),
        (f"projects/{project.id}/memory.safetensors", "changed"),
    ]
    assert collect(settings, store, hours=0).blobs == 0


def test_what_cannot_be_noted_fails_no_job(
    store: Store, project: ProjectRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)

    def full(*_: Any, **__: Any) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr("engine.store.sharing.workspace_sync.write_json", full)
    with working(settings, store, job):
        fill(tree(settings, store, project).folder)
    monkeypatch.undo()
    with working(settings, store, job):
        pass
    assert verify(settings, store) == []


def test_on_postgresql_too_publishers_of_one_workspace_lose_nothing(postgres: Postgres) -> None:
    url = postgres.database()
    stores = [Store(url) for _ in range(4)]
    project = stores[0].projects.create("Rain", "en", "zh", "x")

    def publish(number: int) -> None:
        for i in range(5):
            rows = {f"{number}-{i}": ["0" * 64, i]}
            stores[number].artefacts.merge("projects/1", rows, [f"{number}-{i - 2}"], project_id=project.id)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = stores[1].artefacts.get("projects/1")
    assert row is not None
    assert row.version == 20
    assert sorted(row.files) == sorted(f"{number}-{i}" for number in range(4) for i in (3, 4))
    assert stores[2].artefacts.versions() == {"projects/1": 20}
    stores[3].projects.delete(project.id)
    assert stores[0].artefacts.list() == []


# -- around jobs


def test_a_job_goes_on_where_another_machine_stopped(machine: Machine, store: Store, project: ProjectRow) -> None:
    job = store.jobs.enqueue("customize", {}, project_id=project.id)
    first, other = machine("one"), machine("other")
    path = Path(first.home, f"projects/{project.id}")

    def stopped() -> None:
        with working(first, store, job):
            fill(path)
            (path / "training" / "checkpoint").mkdir(parents=True)
            (path / "training" / "checkpoint" / "state.json").write_bytes(b"step 100")
            raise KeyError

    with pytest.raises(KeyError):
        stopped()
    with working(other, store, job):
        here = Path(other.home, f"projects/{project.id}")
        assert (here / "training" / "checkpoint" / "state.json").read_bytes() == b"step 100"
        (here / "plugin.zip").write_bytes(b"done")
    with working(first, store, job):
        assert (path / "plugin.zip").read_bytes() == b"done"


def test_checkpoints_are_published_while_the_work_goes_on(machine: Machine, store: Store, project: ProjectRow) -> None:
    job = store.jobs.enqueue("customize", {}, project_id=project.id)
    settings, other = machine("one").replace(artefacts_seconds=0.05), tree(machine("other"), store, project)
    with working(settings, store, job):
        path = Path(settings.home, f"projects/{project.id}")
        for step in (b"1", b"2"):
            write(path / "checkpoint" / "state.json", step)
            for _ in range(400):
                other.pull()
                if files(other.folder).get("checkpoint/state.json") == step:
                    break
                threading.Event().wait(0.05)
            assert files(other.folder)["checkpoint/state.json"] == step


def test_the_studio_publishes_before_it_queues_and_fetches_what_is_made(
    machine: Machine, store: Store, project: ProjectRow
) -> None:
    studio, worker = machine("studio"), machine("worker")
    position = fill(Path(studio.home, f"projects/{project.id}"))
    sharing = share_of(studio, store)
    assert share_of(studio, store) is sharing
    job = enqueue(store, "leakage", {}, project_id=project.id)
    with working(worker, store, job):
        there = Path(worker.home, f"projects/{project.id}")
        assert (there / "samples" / "a.txt").read_text(encoding="utf-8") == "雨停了。\n"
        (there / "leaks.json").write_bytes(b"{}")
    assert sharing.look() == 1
    assert (position / "leaks.json").read_bytes() == b"{}"
    before_queueing(store, None)


# -- what goes wrong


def test_addresses_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="nonsense"):
        BlobStore("nonsense://x/y")


def test_a_list_that_leads_out_of_its_folder_is_refused(machine: Machine, store: Store, project: ProjectRow) -> None:
    workspace = tree(machine("one"), store, project)
    store.artefacts.merge(workspace.name, {"../../x": ["0" * 64, 1]}, project_id=project.id)
    with pytest.raises(StorageError, match="leads out of its folder"):
        workspace.pull()


@pytest.mark.slow
def test_a_store_that_is_away_is_waited_for_and_then_said(
    store: Store, project: ProjectRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto")
    monkeypatch.setattr(BlobStore, "waits", (0.05, 0.05))
    with s3_server() as server:
        options: dict[str, Any] = {"artefacts": f"s3://{BUCKET}/x", "artefacts_endpoint": server.url}
        settings = Settings(home=str(tmp_path / "one"), **options)
        workspace = tree(settings, store, project)
        fill(workspace.folder)
        server.stop()
        with pytest.raises(StorageError, match=r"could not be looked up at s3://tailor/x: .*Resume the job") as caught:
            workspace.push()
        assert "\n" not in str(caught.value)
        assert store.artefacts.get(workspace.name) is None, "a list never names what is not there"
        job = store.jobs.enqueue("prepare", {}, project_id=project.id)
        sharing = Sharing(settings, store)
        with pytest.raises(StorageError):
            sharing.publish(project.id)
        monkeypatch.setattr(BlobStore, "waits", (0.5,) * 40)
        again = threading.Timer(1.0, server.start)
        again.start()
        with working(settings, store, job):  # the server comes back while it is waited for
            (workspace.folder / "corpus.jsonl").write_bytes(b"made")
        again.join()
        other = tree(Settings(home=str(tmp_path / "other"), **options), store, project)
        assert other.pull() == 4
    with pytest.raises(StorageError, match="bucket"), s3_server() as server:
        BlobStore("s3://nobody/x", endpoint=server.url).put(*_content(tmp_path))


def _content(folder: Path) -> tuple[Path, Any, int, str]:
    path = folder / "content"
    path.write_bytes(b"x")
    return path, path.open("rb"), 1, hashlib.sha256(b"x").hexdigest()


# -- commands


def test_the_commands(tailormt: Callable[..., Ran], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILORMT_ARTEFACTS", str(tmp_path / "shared"))
    store = Store(f"sqlite:///{home / 'tailor.db'}")
    project = store.projects.create("Rain", "en", "zh", "en-zh")
    settings = Settings(home=str(home), artefacts=str(tmp_path / "shared"))
    workspace = tree(settings, store, project)
    fill(workspace.folder)
    workspace.push()
    assert "projects/1" in tailormt("artefacts", "list").out
    assert tailormt("artefacts", "verify").out.strip() == "All is whole."
    blob(settings, BIG).unlink()
    ran = tailormt("artefacts", "verify")
    assert ran.code == 1
    assert "memory.safetensors" in ran.out
    store.projects.delete(project.id)
    assert "2 artefacts" in tailormt("artefacts", "collect", "--older-than", "0", "--dry-run").out
    assert "2 artefacts" in tailormt("artefacts", "collect", "--older-than", "0").out
    assert "0 artefacts" in tailormt("artefacts", "collect", "--older-than", "0").out
