"""The databases that tests run on: SQLite in a file, and a PostgreSQL server of this test run's own on a free port.

The server is Debian's (`apt install postgresql`), started in a temporary folder and ended with the run; nothing of an
installed service is touched. Tests that ask for it are skipped with a reason where there is none.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

USER = "tailor"
TEMPLATE = "tailor_template"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # the machine does not lose power in a test; a server that is killed still loses nothing
    "max_connections": "120",
    "log_min_messages": "warning",
}


# A process beside the tests: when their end of its pipe closes, however they ended, it ends the server and clears away.
KEEPER = """
import json, shutil, subprocess, sys
control, folder, who = json.loads(sys.argv[1])
sys.stdin.read()
subprocess.run([control, "-D", folder + "/data", "-m", "immediate", "stop"], cwd=folder, capture_output=True, **who)
shutil.rmtree(folder, ignore_errors=True)
"""


@dataclass
class Postgres:
    """A server: `stop` and `start` it at will, `database` makes an empty database or a copy of one."""

    programs: Path
    folder: Path
    port: int
    keeper: subprocess.Popen[bytes]

    def control(self, *arguments: str) -> None:
        self.program("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "60", *arguments)

    def start(self) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        options += f" -p {self.port} -k {self.folder}"
        self.control("-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """`fast` ends connections and writes all down; `immediate` is a crash."""
        self.control("-m", mode, "stop")

    def make(self) -> None:
        self.program("initdb", "-D", str(self.folder / "data"), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")

    def url(self, name: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def database(self, template: str = "template1") -> str:
        """A new database; returns its address."""
        name = f"test_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def execute(self, words: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(words)

    def program(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs, in the server's folder."""
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120,
            check=False, **_somebody(),
        )  # fmt: skip
        if done.returncode:
            log = self.folder / "log"
            text = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}\n{text}")


def _somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: whom to run it as then."""
    if os.name == "nt" or os.getuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    result = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": result.pw_uid, "group": result.pw_gid, "extra_groups": []}


def _programs() -> Path | None:
    initdb = shutil.which("initdb")
    if initdb:
        return Path(initdb).resolve().parent  # it may be a link to the folder that has them all
    results = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return results[-1].parent if results else None


def start_server() -> Postgres:
    """A new server in a temporary folder. Skips the test where PostgreSQL or its driver is not installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install -e '.[postgres]')")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (apt install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="tailormt-postgres-"))
    who = _somebody()
    if who:
        os.chown(folder, who["user"], who["group"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = json.dumps([str(programs / "pg_ctl"), str(folder), who])
    command = [sys.executable, "-c", KEEPER, arguments]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    server = Postgres(programs, folder, port, keeper)
    server.make()
    server.start()
    return server


def end_server(server: Postgres) -> None:
    server.keeper.communicate(timeout=300)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The test run's server. A test that stops it starts one of its own instead, by `start_server`."""
    from engine.store import Store

    server = start_server()
    try:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        Store(server.url(TEMPLATE)).close()
        yield server
    finally:
        end_server(server)


def sqlite_store(file: Path) -> str:
    """The address of an empty store in a file: a copy of one, since all migrations take a tenth of a second."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_sqlite_template())
    return f"sqlite:///{file}"


@functools.cache
def _sqlite_template() -> bytes:
    from engine.store import Store

    with tempfile.TemporaryDirectory(prefix="tailormt-store-") as folder:
        file = Path(folder) / "tailor.db"
        Store(f"sqlite:///{file}").close()
        return file.read_bytes()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store of the test's own, on either database."""
    if request.param == "sqlite":
        yield sqlite_store(tmp_path / "tailor.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.database(TEMPLATE)
    yield url
    server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with nothing in it, on either database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.database()
    yield url
    server.drop(url)


@pytest.fixture(scope="session", autouse=True)
def stores_elsewhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """With `--store postgresql`: every store that a test opens in this process as an SQLite file is one on PostgreSQL."""
    if request.config.getoption("--store") == "sqlite":
        yield
        return
    from sqlalchemy.engine import URL

    from engine.store import database, store

    server: Postgres = request.getfixturevalue("postgres")
    urls: dict[str, str] = {}

    def parse(url: str) -> URL:
        result = database.parse(url)
        file = database.file_of(result)
        if file is None:
            return result
        if str(file) not in urls:
            urls[str(file)] = server.database(TEMPLATE)
        return database.parse(urls[str(file)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "parse", parse)
        yield
