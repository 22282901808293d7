"""The doctor finds what is wrong and mends what it can; a backup brings everything back, also elsewhere."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import sqlite3
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core.settings import Settings
from engine.corpora import SampleFiles, import_to
from engine.errors import InputError
from engine.store import Store, tables
from engine.store.sharing import BlobStore, WorkspaceSync
from engine.workflows.maintenance.archive import MANIFEST, STORE
from engine.workflows.maintenance.backup import make_backup
from engine.workflows.maintenance.doctor import examine
from engine.workflows.maintenance.finding import Finding
from engine.workflows.maintenance.restore import restore_backup
from tests.bases import EN_ZH
from tests.conftest import SAMPLES, Ran
from tests.databases import Postgres

GOLDEN = Path(__file__).parents[2] / "golden" / "format-1" / "plugin.zip"


@pytest.fixture
def settings(tmp_path: Path, store_url: str) -> Settings:
    """An installation with a project, its samples, a plugin, and a job that is done; on either database."""
    settings = Settings(home=str(tmp_path / "home"), database_url="" if "sqlite" in store_url else store_url)
    store = Store(settings.store_url)
    project = store.projects.create("Rain", "en", "zh", str(EN_ZH))
    folder = settings.home_dir / "projects" / "1"
    (folder / "samples").mkdir(parents=True)
    (folder / "plugins").mkdir()
    shutil.copyfile(SAMPLES / "literary-zh" / "literary-zh.txt", folder / "samples" / "a.txt")
    report = import_to(folder, SampleFiles([folder / "samples" / "a.txt"], "zh"))
    store.corpora.create(project.id, "a.txt", folder=str(folder))
    store.corpora.update(1, state="ready", kept=report.kept)
    shutil.copyfile(GOLDEN, folder / "plugins" / "style.zip")
    job = store.jobs.enqueue("prepare", {"samples": [str(folder / "samples" / "a.txt")]}, project_id=project.id)
    store.jobs.claim("here:1:a")
    store.jobs.finish(job.id, 1, {"plugin": str(folder / "plugins" / "style.zip")})
    store.plugins.create(project.id, "Style", method="memory_adapter", path=str(folder / "plugins" / "style.zip"))
    (settings.home_dir / "jobs").mkdir()
    (settings.home_dir / "jobs" / "1.log").write_text("done\n", encoding="utf-8")
    (settings.home_dir / "unpacked" / "x").mkdir(parents=True)
    (settings.home_dir / "unpacked" / "x" / "big.safetensors").write_bytes(b"x" * 100)
    (settings.home_dir / "settings.toml").write_text("threads = 1\n", encoding="utf-8")
    store.close()
    return settings


def files(home: Path) -> dict[str, bytes]:
    skip = ("tailor.db", "unpacked")
    result = (path for path in home.rglob("*") if path.is_file())
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in result
        if not path.relative_to(home).as_posix().startswith(skip)
    }


def seen(findings: list[Finding], check: str) -> list[Finding]:
    assert all(finding.sentence.endswith((".", "?")) or ":" in finding.sentence for finding in findings)
    return [finding for finding in findings if finding.check == check]


# -- backup and restore


def test_a_backup_brings_everything_back_to_another_folder(settings: Settings, tmp_path: Path) -> None:
    summary = make_backup(settings, tmp_path / "a.zip")
    assert summary["rows"] >= 4
    assert (tmp_path / "a.zip").stat().st_mode & 0o077 == 0, "nobody else may read it"
    other = Settings(home=str(tmp_path / "other"))
    done = restore_backup(other, tmp_path / "a.zip")
    assert done["kept"] is None
    assert files(other.home_dir) == files(settings.home_dir)
    assert not (other.home_dir / "unpacked").exists(), "caches are made again"
    before, after = Store(settings.store_url), Store(other.store_url)
    old, new = str(settings.home_dir), str(other.home_dir)
    (plugin,) = after.plugins.list()
    assert plugin.path == before.plugins.list()[0].path.replace(old, new)
    assert plugin.exists
    assert after.corpora.list()[0].folder == f"{new}/projects/1"
    assert after.jobs.get(1).arguments == {"samples": [f"{new}/projects/1/samples/a.txt"]}
    assert after.jobs.get(1).result == {"plugin": plugin.path}
    assert after.projects.list()[0].base == str(EN_ZH), "what lies elsewhere stays there"
    assert [finding.sentence for finding in examine(other) if finding.check not in ("libraries", "disk")] == []
    assert not list(tmp_path.glob(".*restoring*"))


def test_a_backup_is_of_one_moment_while_the_studio_writes(settings: Settings, tmp_path: Path) -> None:
    store, stop = Store(settings.store_url), threading.Event()

    def write() -> None:
        while not stop.is_set():
            row = store.projects.create("two", "en", "zh", "x")
            store.projects.update(row.id, name="rows")
            (settings.home_dir / "projects" / "1" / "metrics.jsonl").open("a").write("row\n" * 1000)
            (settings.home_dir / "projects" / "1" / f"{row.id}.txt").write_text("x", encoding="utf-8")
            with contextlib.suppress(FileNotFoundError):
                (settings.home_dir / "projects" / "1" / f"{row.id - 1}.txt").unlink()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(3):
            make_backup(settings, tmp_path / f"{number}.zip")
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        other = Settings(home=str(tmp_path / f"other-{number}"))
        restore_backup(other, tmp_path / f"{number}.zip")
        with contextlib.closing(sqlite3.connect(other.home_dir / "tailor.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_samples_and_bases_can_stay_out(settings: Settings, tmp_path: Path) -> None:
    (settings.home_dir / "models" / "mine").mkdir(parents=True)
    (settings.home_dir / "models" / "mine" / "config.json").write_bytes(b"{}")
    make_backup(settings, tmp_path / "a.zip", samples=False, bases=False)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert sorted(archive.namelist()) == [
            "home/jobs/1.log", "home/projects/1/plugins/style.zip", "home/settings.toml", MANIFEST, STORE,
        ]  # fmt: skip
        first = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[0]
        texts = [archive.read(name) for name in archive.namelist() if not name.endswith((".zip", ".db"))]
        assert not any(first.encode() in text for text in texts)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # a database that holds rows is never replaced
def test_a_folder_that_is_not_empty_is_only_replaced_when_told(settings: Settings, tmp_path: Path) -> None:
    make_backup(settings, tmp_path / "a.zip")
    Store(settings.store_url).projects.create("later", "en", "zh", "x")
    with pytest.raises(InputError, match=r"is not empty.*--replace"):
        restore_backup(settings, tmp_path / "a.zip")
    store = Store(settings.store_url)
    store.workers.beat("here:1:a", "here", os.getpid())
    with pytest.raises(InputError, match="A worker serves"):
        restore_backup(settings, tmp_path / "a.zip", replace=True)
    store.workers.remove("here:1:a")
    store.close()
    done = restore_backup(settings, tmp_path / "a.zip", replace=True)
    assert [row.name for row in Store(settings.store_url).projects.list()] == ["Rain"]
    selected = Store(f"sqlite:///{done['kept']}/tailor.db")
    assert {row.name for row in selected.projects.list()} == {"Rain", "later"}
    (tmp_path / "empty").mkdir()
    assert restore_backup(Settings(home=str(tmp_path / "empty")), tmp_path / "a.zip")["kept"] is None


@pytest.mark.parametrize("damage", ["byte", "stream", "cut", "text", "path", "missing", "more", "format", "manifest"])
def test_a_damaged_backup_changes_nothing(damage: str, settings: Settings, tmp_path: Path) -> None:
    make_backup(settings, tmp_path / "a.zip")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    bad = tmp_path / "bad.zip"
    if damage == "byte":
        data[len(data) // 2] ^= 1
        bad.write_bytes(data)
    elif damage == "stream":
        with zipfile.ZipFile(tmp_path / "a.zip") as old, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as new:
            new.writestr(MANIFEST, old.read(MANIFEST) * 3)
        packed = bytearray(bad.read_bytes())
        packed[60:90] = b"\xff" * 30
        bad.write_bytes(packed)
    elif damage == "cut":
        bad.write_bytes(data[: len(data) // 2])
    elif damage == "text":
        bad.write_bytes(b"no zip")
    else:
        with zipfile.ZipFile(tmp_path / "a.zip") as old, zipfile.ZipFile(bad, "w") as new:
            manifest = json.loads(old.read(MANIFEST))
            for name in old.namelist():
                if name == MANIFEST or (damage == "missing" and name.endswith("settings.toml")):
                    continue
                new.writestr("home/../../x" if damage == "path" and name.endswith(".log") else name, old.read(name))
            if damage == "path":
                manifest["files"]["home/../../x"] = manifest["files"].pop("home/jobs/1.log")
            if damage == "more":
                new.writestr("home/more.txt", b"x")
            if damage == "format":
                manifest["format"] = 9
            new.writestr(MANIFEST, b"[" * 5000 if damage == "manifest" else json.dumps(manifest).encode())
    other = Settings(home=str(tmp_path / "new" / "other"))
    with pytest.raises(InputError) as caught:
        restore_backup(other, bad)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new" / "other").exists()
    assert not (tmp_path / "new" / "x").exists()
    assert not (tmp_path / "x").exists()


def test_a_job_at_work_in_the_backup_is_interrupted_in_what_comes_back(settings: Settings, tmp_path: Path) -> None:
    store = Store(settings.store_url)
    job = store.jobs.enqueue("prepare", {}, project_id=1)
    store.jobs.claim("here:1:a")
    store.workers.beat("here:1:a", "here", os.getpid())
    make_backup(settings, tmp_path / "a.zip")
    other = Settings(home=str(tmp_path / "other"))
    restore_backup(other, tmp_path / "a.zip")
    after = Store(other.store_url)
    assert not after.jobs.list(states=["running"])
    assert after.jobs.get(job.id).state in ("interrupted", "queued")
    assert after.workers.list(within=None) == []
    assert store.jobs.get(job.id).state == "running", "the one that was backed up goes on"


def test_a_backup_moves_to_postgresql_and_back(settings: Settings, postgres: Postgres, tmp_path: Path) -> None:
    make_backup(settings, tmp_path / "a.zip")
    team = Settings(home=str(tmp_path / "team"), database_url=postgres.database())
    restore_backup(team, tmp_path / "a.zip")
    assert not (team.home_dir / "tailor.db").exists()
    (plugin,) = Store(team.store_url).plugins.list()
    assert plugin.path == str(team.home_dir / "projects" / "1" / "plugins" / "style.zip")
    assert plugin.exists
    make_backup(team, tmp_path / "b.zip")
    back = Settings(home=str(tmp_path / "back"))
    restore_backup(back, tmp_path / "b.zip")
    assert files(back.home_dir) == files(settings.home_dir)
    assert Store(back.store_url).jobs.get(1).arguments["samples"] == [f"{back.home_dir}/projects/1/samples/a.txt"]


# -- doctor


def test_an_installation_that_is_well_has_no_findings(settings: Settings) -> None:
    before = files(settings.home_dir)
    assert [finding.sentence for finding in examine(settings, repair=True) if finding.check not in ("libraries", "disk")] == []
    assert files(settings.home_dir) == before


def test_where_nothing_is_yet_nothing_is_made(tmp_path: Path) -> None:
    result = examine(Settings(home=str(tmp_path / "home")))
    assert "does not exist yet" in seen(result, "permissions")[0].sentence


def test_files_that_are_gone_damaged_or_named_by_nothing(settings: Settings) -> None:
    home, store = settings.home_dir, Store(settings.store_url)
    (home / "projects" / "1" / "plugins" / "style.zip").write_bytes(GOLDEN.read_bytes()[:-700])
    store.plugins.create(1, "Gone", method="memory_adapter", path=str(home / "projects" / "1" / "plugins" / "gone.zip"))
    (home / "projects" / "1" / "corpus.jsonl").unlink()
    (home / "projects" / "1" / "plugins" / "lone.zip").write_bytes(b"x")
    (home / "projects" / "77").mkdir()
    (home / "jobs" / "99.log").write_bytes(b"x")
    (home / "projects" / "1" / ".summary.json.abc.tmp").write_bytes(b"x")
    (home / "projects" / "1" / "checkpoint.tmp").mkdir()
    old = time.time() - 7200
    for name in (".summary.json.abc.tmp", "checkpoint.tmp"):
        os.utime(home / "projects" / "1" / name, (old, old))
    result = examine(settings)
    assert [finding.sentence.split(" cannot")[0] for finding in seen(result, "bundles")] == ["The plugin Style"]
    assert len(seen(result, "missing")) == 2
    assert {Path(finding.place).name for finding in seen(result, "unnamed")} == {"77", "99.log", "lone.zip"}
    assert {Path(finding.place).name for finding in seen(result, "leftovers")} == {".summary.json.abc.tmp", "checkpoint.tmp"}
    mended = [finding for finding in examine(settings, repair=True) if finding.mended]
    assert len(mended) == 5
    assert (home / "lost+found" / "projects" / "1" / "plugins" / "lone.zip").read_bytes() == b"x", "nothing is thrown away"
    assert (home / "lost+found" / "jobs" / "99.log").exists()
    left = examine(settings, repair=True)
    assert {finding.check for finding in left} - {"libraries", "disk"} == {"bundles", "missing"}


def test_files_that_are_gone_come_back_from_the_store_of_artefacts(settings: Settings, tmp_path: Path) -> None:
    shared = settings.replace(artefacts=str(tmp_path / "shared"))
    store = Store(settings.store_url)
    folder = settings.home_dir / "projects" / "1"
    WorkspaceSync(folder, "projects/1", store, BlobStore(shared.artefacts), 1).push()
    (folder / "plugins" / "style.zip").unlink()
    damaged = next(path for path in (tmp_path / "shared" / "blobs").glob("*/*") if path.samefile(folder / "samples" / "a.txt"))
    damaged.unlink()
    damaged.write_bytes(b"x")
    result = examine(shared, repair=True)
    assert [finding.check for finding in result if finding.mended] == ["missing", "checksums"]
    assert (folder / "plugins" / "style.zip").read_bytes() == GOLDEN.read_bytes()
    assert [finding.sentence for finding in examine(shared) if finding.check not in ("libraries", "disk")] == []


def test_jobs_that_nobody_does(settings: Settings) -> None:
    store = Store(settings.store_url)
    job = store.jobs.enqueue("prepare", {}, project_id=1)
    store.jobs.claim("gone:1:a")
    store.corpora.update(1, state="reading")
    with store.write() as session:
        long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=2)
        record = session.get(tables.Job, job.id)
        assert record is not None
        record.heartbeat = long_ago
    (finding,) = seen(examine(settings), "jobs")
    assert "has been inactive for 2 h" in finding.sentence
    examine(settings, repair=True)
    assert store.jobs.get(job.id).state != "running"
    if store.jobs.get(job.id).state == "queued":  # it goes on by itself
        store.jobs.cancel(job.id)
    examine(settings, repair=True)
    assert store.corpora.get(1).state == "failed"
    assert seen(examine(settings), "jobs") == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # its pages are damaged in the file
def test_a_damaged_store_is_said_and_left_alone(settings: Settings) -> None:
    folder = settings.home_dir / "tailor.db"
    with contextlib.closing(sqlite3.connect(folder)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("UPDATE corpus SET project_id = 99")
        connection.commit()
    (finding,) = seen(examine(settings, repair=True), "rows")
    assert finding.mended == "1 rows were removed."
    data = bytearray(folder.read_bytes())
    data[5000:9000] = os.urandom(4000)
    folder.write_bytes(data)
    (finding,) = seen(examine(settings, repair=True), "store")
    assert "tailormt restore" in finding.sentence
    assert folder.read_bytes() == data


def test_bases_and_parsers_with_damaged_files(settings: Settings, tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    shutil.copytree(EN_ZH, assets / "models" / "en-zh")
    weights = assets / "models" / "en-zh" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (assets / "models" / "none").mkdir()
    (assets / "parsers" / "xx" / "pos").mkdir(parents=True)
    (assets / "parsers" / "resources.json").write_text(json.dumps({"xx": {"pos": {"a": {"md5": "0" * 32}}}}), encoding="utf-8")
    (assets / "parsers" / "xx" / "pos" / "a.pt").write_bytes(b"x")
    result = examine(settings.replace(assets=str(assets)))
    assert len(seen(result, "bases")) == 2
    assert "Install the parser for xx again" in seen(result, "parsers")[0].sentence


# -- commands


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # the steps themselves are tested above, on both
def test_the_commands(settings: Settings, tailormt: Callable[..., Ran], tmp_path: Path) -> None:
    where = ("--home", settings.home)
    ran = tailormt("backup", tmp_path / "a.zip", *where)
    assert ran.code == 0
    assert "keep it where only you can read it" in ran.out
    assert "is not empty" in tailormt("restore", tmp_path / "a.zip", *where).sentence
    assert tailormt("restore", tmp_path / "a.zip", "--home", tmp_path / "new").code == 0
    (Path(settings.home) / "jobs" / "99.log").write_bytes(b"x")
    ran = tailormt("doctor", "--json", *where)
    assert ran.code == 1
    data = json.loads(ran.out)
    assert data["ok"] is False
    assert [finding["repairable"] for finding in data["findings"] if finding["check"] == "unnamed"] == [True]
    ran = tailormt("doctor", "--repair", *where)
    assert "Mended: It was moved to" in ran.out
    assert "99.log" not in tailormt("doctor", *where).out
