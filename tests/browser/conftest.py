"""A real studio with a home of its own, started as a user starts it, and a browser that watches what leaves the machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from docs.make_pictures import FLAGS
from engine.core.settings import Settings
from engine.store import ProjectRow, Store
from studio.services.uploads import INBOX
from tests.ready_made import read_samples, short_assets

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "assets" / "models" / "en-zh"
SAMPLE = ROOT / "assets" / "samples" / "literary-zh" / "literary-zh.txt"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CALL = pytest.StashKey[pytest.TestReport]()  # how a test's own code ended, for its fixtures


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report: pytest.TestReport = yield
    if report.when == "call":
        item.stash[CALL] = report
    return report


@dataclass
class Studio:
    """A running studio: its address, its settings, its store."""

    url: str
    settings: Settings
    store: Store

    def workspace(self, project: ProjectRow) -> Path:
        folder = self.settings.home_dir / "projects" / str(project.id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def project(self, name: str) -> ProjectRow:
        """A project with real sentences and phrases, as if its samples had been read."""
        project = self.store.projects.create(name, "en", "zh", str(BASE))
        folder = self.workspace(project)
        read, parser, count = read_samples(SAMPLE)
        shutil.copytree(read, folder, dirs_exist_ok=True)
        report = json.loads((folder / "import_report.json").read_text(encoding="utf-8"))
        row = self.store.corpora.create(project.id, SAMPLE.name, folder=str(folder))
        self.store.corpora.update(row.id, state="ready", kept=report["kept"], skipped=report["skipped"], report=report)
        self.store.phrase_sets.create(row.id, str(folder / "phrases.jsonl"), parser, count)
        return project


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """`python app.py` on a free port with a home where the base's licence was accepted and nothing else is; the worker that it
    starts is stopped at the end.
    """
    from engine.core.model_card import read_card_file
    from engine.jobs import stop_background_worker
    from studio.services.catalog import Catalog

    settings = free_settings(tmp_path_factory.mktemp("home"))
    Catalog(settings).accept(read_card_file(BASE), BASE)
    try:
        with served(settings) as (url, _):
            yield Studio(url, settings, Store(settings.store_url))
    finally:
        stop_background_worker(settings)


def free_settings(home: Path, first_look: bool = False) -> Settings:
    """Settings of a studio with that home, on a free port. A first look is half a minute of work after each upload: no test but
    that of the first look itself has one.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Settings(home=str(home), assets=str(short_assets()), port=port, device="cpu", first_look=first_look)


@contextlib.contextmanager
def served(settings: Settings) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`python app.py` as long as the block lasts: its address and its process. The worker that it starts outlives it.

    Fails where the log shows a traceback: what went wrong in the studio then had no sentence, or nobody saw it.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRADIO_")} | {
        "TAILORMT_HOME": settings.home,
        "TAILORMT_PORT": str(settings.port),
        "TAILORMT_DEVICE": "cpu",
        "TAILORMT_ASSETS": settings.assets,
        "TAILORMT_FIRST_LOOK": "on" if settings.first_look else "off",
    }
    path = settings.home_dir / "studio.log"
    begin = path.stat().st_size if path.exists() else 0
    with path.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py")], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{settings.port}"
            _wait(url, process, settings)
            yield url, process
        finally:
            process.terminate()
            process.wait(timeout=120)
    text = path.read_bytes()[begin:].decode("utf-8", errors="replace")
    assert "Traceback" not in text, f"the studio's log shows an error:\n{text[max(0, text.index('Traceback') - 500) :][:8000]}"


def _wait(url: str, process: subprocess.Popen[bytes], settings: Settings) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail("the studio ended:\n" + (settings.home_dir / "studio.log").read_text(encoding="utf-8"))
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except urllib.error.HTTPError:  # it asks to sign in
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail("the studio did not answer within 300 s")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's chromium, headless."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium, or set CHROMIUM)")
    playwright.expect.set_options(timeout=60_000)  # where other work shares the cores
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of 1280×800. Fails the test when something asked another host, or the console shows an error."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    outside: list[str] = []
    errors: list[str] = []
    # The request of the next page until that is there: the page before goes on meanwhile, and the server may have given it up.
    leaving: Any = None

    def asked(request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")):
            outside.append(request.url)

    def left(request: Any) -> None:
        nonlocal leaving
        if request.is_navigation_request() and request.frame == tab.main_frame:
            leaving = request

    def stayed(request: Any) -> None:  # as where the answer is a file
        nonlocal leaving
        if request == leaving:
            leaving = None

    def arrived(frame: Any) -> None:
        nonlocal leaving
        if frame == tab.main_frame:
            leaving = None

    context.on("request", asked)
    tab.on("request", left)
    tab.on("requestfailed", stayed)
    tab.on("framenavigated", arrived)

    def complained(text: str) -> None:
        # Leaving a page cuts its event stream off, and late answers to it meet the next page: Gradio reports both as errors.
        if leaving is None and not re.search(r"AbortError|errored out|Component with ID \d+ not found", text):
            errors.append(text)

    tab.on("pageerror", lambda error: complained(str(error)))
    tab.on("console", lambda line: complained(line.text) if line.type == "error" else None)
    yield tab
    if (report := request.node.stash.get(CALL, None)) is not None and report.failed:
        with contextlib.suppress(Exception):  # a page that answers no more must not hide why the test failed
            buttons = tab.locator("button").evaluate_all("(all) => all.map((one) => one.outerHTML).join('\\n')")
            text = tab.locator("body").inner_text(timeout=5000)
            request.node.add_report_section("teardown", "page", f"{tab.url}\n{text[:4000]}\n{buttons[:8000]}")
    context.close()
    if "studio" in request.fixturenames:
        # The next test chooses its own files for a new project, and waits for its own jobs.
        ours: Studio = request.getfixturevalue("studio")
        shutil.rmtree(ours.settings.home_dir / INBOX, ignore_errors=True)
        for job in ours.store.jobs.list(states=("queued", "running")):
            ours.store.jobs.cancel(job.id)
    assert outside == [], "something was fetched from another host"
    assert errors == [], "the browser's console shows errors"
