"""What tests share: a small real base on disk, a plugin made on it, the command line in this process and in its own.

Nothing here touches the user's data folder, and nothing may fetch anything. The folder of a test says when it runs
(CONTRIBUTING.md): of tests/integration `make test` takes those marked `smoke`, of tests/slow and tests/browser none.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import properties  # noqa: F401 - loads Hypothesis's profile
from tests.databases import empty_url, postgres, sqlite_store, store_url, stores_elsewhere  # noqa: F401 - fixtures for all

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SAMPLES = ROOT / "assets" / "samples"
BASES = ROOT / "assets" / "models"

# Files that take longest, first of all: one of them that begins last has a core of two to itself. In the browser an empty studio
# is seen by who comes first.
FIRST = (
    "slow/test_methods_on_cuda.py", "integration/test_worker.py", "integration/test_methods.py", "slow/test_ray.py",
    "slow/test_hub_families.py", "integration/test_api_clients.py", "slow/test_reproduce.py", "integration/test_cli.py",
    "unit/studio/test_strangers.py", "integration/test_every_route.py", "integration/test_runs.py",
    "integration/test_reliability_store.py", "slow/test_jobs_killed.py", "integration/test_knn_commands.py",
    "unit/plugins/test_library.py", "unit/serving/test_patterns.py", "unit/workflows/test_maintenance.py",
    "browser/test_studio.py", "browser/test_journey.py", "browser/test_nothing_lost.py", "browser/test_compare.py",
)  # fmt: skip

# What keeps a customization short in a test: a few updates on a few phrases.
SHORT = (
    *("--phrase-option", "parser=statistical", "--phrase-option", "l_max=4"),
    *("--method-option", "retrieval=global", "--method-option", "bottleneck=0"),
    *("--method-option", "phrases_per_layer=40"),
    *("--training-option", "max_updates=4", "--training-option", "validate_every=2"),
    *("--training-option", "checkpoint_every=2", "--training-option", "tokens_per_batch=256"),
    *("--training-option", "replay=0"),
    *("--training-option", "learning_rate=0.005", "--training-option", "warmup=1", "--training-option", "watch=2"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", choices=("sqlite", "postgresql"), default="sqlite", help="database of tests that open a store of files"
    )


def pytest_configure(config: pytest.Config) -> None:
    folder = tempfile.mkdtemp(prefix="tailormt-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ |= {
        "TAILORMT_HOME": f"{folder}/home",
        "STANZA_RESOURCES_DIR": f"{folder}/stanza",
        "TAILORMT_DEVICE": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # read when torch is loaded: several test runs share few cores
    }

    if not hasattr(config, "workerinput"):  # with pytest-xdist the reports of all workers come to the controller
        config.pluginmanager.register(SecondsPerFile())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """What is imported for all tests stays to the end: it is no garbage, and looking for garbage among it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: position for position, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(TESTS).as_posix(), len(FIRST)))
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder == "slow" or (folder == "integration" and item.get_closest_marker("smoke") is None):
            item.add_marker(pytest.mark.slow)
        elif folder == "browser":
            item.add_marker(pytest.mark.browser)
            if os.environ.get("CI"):  # as Playwright's own template has it; a second try is listed as RERUN at the end
                item.add_marker(pytest.mark.flaky(reruns=1))


class SecondsPerFile:
    """Sums up what the tests of a file took, fixtures included, and prints the 30 longest files at the end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if len(self.seconds) > 1:
            terminalreporter.section("seconds per file")
            for file, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])[:30]:
                terminalreporter.line(f"{seconds:8.1f} s  {file}")
            terminalreporter.line(f"{sum(self.seconds.values()):8.1f} s  {len(self.seconds)} files")


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence that a failed command says; fails where it says more, or anything of a programmer's."""
        assert self.code == 2, (self.code, self.err)
        assert "Traceback" not in self.err
        texts = [line for line in self.err.splitlines() if line.startswith("tailormt: ")]
        assert len(texts) == 1, self.err
        assert self.err.splitlines()[-1] == texts[0], "the sentence is the last thing that is said"
        assert texts[0].endswith((".", "?")), texts[0]
        return texts[0].removeprefix("tailormt: ")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of this test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("TAILORMT_HOME", str(folder))
    return folder


@pytest.fixture
def tailormt(home: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Runs a command in this process: as `python -m engine.cli` does, without the seconds that loading torch takes."""
    from engine.cli import terminal
    from engine.cli.main import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: Any) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        output = capsys.readouterr()
        return Ran(code, output.out, output.err)

    yield run
    terminal._stopped = False
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def command(home: Path) -> Callable[..., Ran]:
    """Runs a command in a process of its own, as a user's shell does."""

    def run(*arguments: Any, input: str | bytes | None = None, **environment: str) -> Ran:
        stdin = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli", *map(str, arguments)],
            cwd=ROOT, input=stdin, capture_output=True, timeout=600, check=False, env={**os.environ, **environment},
        )  # fmt: skip
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return run


@pytest.fixture(scope="session")
def little_general_text() -> Iterator[None]:
    """Most of a customization of a tiny base was general text: a sixth of it is replayed here, and 12 sentences in place of 120
    measure it.
    """
    from engine.corpora.general_text import general_sentences
    from engine.evaluation import general_text
    from engine.workflows.customize import domain_filter

    def few(*args: Any, **kwargs: Any) -> list[str]:
        return general_sentences(*args, **kwargs)[::6]

    with pytest.MonkeyPatch.context() as patch:
        for module in (general_text, domain_filter):
            patch.setattr(module, "general_sentences", few)
        patch.setattr(general_text, "MOST", 12)
        yield


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, little_general_text: None) -> Path:
    """A base of English and Chinese, both directions, trained for a second. Tests only read it."""
    from tests.bases import make_base

    return make_base(tmp_path_factory.mktemp("bases") / "tiny-en-zh", half=True)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty sentences of Chinese literary prose."""
    file = tmp_path_factory.mktemp("samples") / "style.txt"
    lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:60]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def request_for(tiny: Path, sample: Path) -> Callable[..., Any]:
    """Makes the request of a short customization of the tiny base."""

    def make(output: Path, **changes: Any) -> Any:
        from engine.cli.customize import request_of
        from engine.cli.main import parser
        from engine.core.settings import load_settings

        line = ["customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--budget", "quick"]
        args = parser().parse_args([str(a) for a in (*line, *SHORT, "-o", output)])
        args.settings = load_settings()
        return request_of(args).replace(**changes)

    return make


@pytest.fixture(scope="session")
def bundle(request_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin of the tiny base, made by the main job. Tests only read it."""
    from engine.workflows.customize.pipeline import customize

    folder = tmp_path_factory.mktemp("plugins")
    customize(request_for(folder / "style.zip", name="Style"), folder / "workspace")
    return folder / "style.zip"


@pytest.fixture(autouse=True, scope="session")
def trials_in_this_process() -> None:
    """An import is tried here, as a process takes seconds to start; tests/unit/plugins/test_scratch.py starts it."""
    from engine.plugins import import_checks, scratch, trial

    def answers(path: Path, base: Any, cache: Path | None) -> Any:
        return trial.answers(scratch.request_for(path, base) | {"cache": str(cache), "memory": 0})

    import_checks.answers = answers  # type: ignore[assignment]


@pytest.fixture(autouse=True, scope="session")
def one_event_loop() -> Iterator[None]:
    """Requests of all tests run in one event loop, as in a server: a loop and its threads for each took longer than the request."""
    import anyio.from_thread
    from starlette.testclient import TestClient

    with anyio.from_thread.start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "portal", portal)
        yield


@pytest.fixture(scope="session")
def base(tiny: Path) -> Any:
    """The tiny base, loaded."""
    from engine.base import BaseModel

    return BaseModel.load(tiny, "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def pair() -> Any:
    """Untrained bases in memory, of English and Chinese, and back."""
    from tests.bases import tiny_pair

    return tiny_pair()


@pytest.fixture
def settings(tmp_path: Path) -> Any:
    """Settings with a data folder of the test's own."""
    from engine.core.settings import Settings

    return Settings(home=str(tmp_path), device="cpu", threads=1)


@pytest.fixture
def store(settings: Any) -> Any:
    """The store of these settings, empty."""
    from engine.store import Store

    if not settings.database_url:
        sqlite_store(settings.home_dir / "tailor.db")
    return Store(settings.store_url)


@pytest.fixture
def service(settings: Any) -> Any:
    """What the studio's pages ask, with these settings."""
    from studio.services.service import Service

    return Service(settings)
