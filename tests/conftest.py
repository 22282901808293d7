"""What tests share: a small real base on disk, a plugin made on it, the command line in this process and in its own.

Nothing here touches the user's data folder, and nothing may fetch anything.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.databases import empty_url, postgres, store_url, stores_elsewhere  # noqa: F401 - fixtures for all

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "assets" / "samples"
BASES = ROOT / "assets" / "models"

# What keeps a customization short in a test: a few updates on a few phrases.
SHORT = (
    *("--phrase-option", "parser=statistical", "--phrase-option", "l_max=4"),
    *("--method-option", "phrases_per_layer=40"),
    *("--training-option", "max_updates=4", "--training-option", "validate_every=2"),
    *("--training-option", "checkpoint_every=2", "--training-option", "tokens_per_batch=256"),
    *("--training-option", "learning_rate=0.02", "--training-option", "warmup=1"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("sqlite", "postgresql"),
        default="sqlite",
        help="database of tests that open a store of files",
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
        said = [line for line in self.err.splitlines() if line.startswith("tailormt: ")]
        assert len(said) == 1, self.err
        assert self.err.splitlines()[-1] == said[0], "the sentence is the last thing that is said"
        assert said[0].endswith((".", "?")), said[0]
        return said[0].removeprefix("tailormt: ")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of this test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("TAILORMT_HOME", str(folder))
    return folder


@pytest.fixture
def tailormt(home: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Runs a command in this process: as `python -m engine.cli` does, without the seconds that loading torch takes."""
    from engine import terminal
    from engine.cli import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: Any) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        shown = capsys.readouterr()
        return Ran(code, shown.out, shown.err)

    yield run
    terminal._stopped = False
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def command(home: Path) -> Callable[..., Ran]:
    """Runs a command in a process of its own, as a user's shell does."""

    def run(*arguments: Any, input: str | bytes | None = None, **environment: str) -> Ran:
        given = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli", *map(str, arguments)],
            cwd=ROOT, input=given, capture_output=True, timeout=120, check=False, env={**os.environ, **environment},
        )  # fmt: skip
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base of English and Chinese, both directions, trained for a second. Tests only read it."""
    from tests.bases import make_base

    return make_base(tmp_path_factory.mktemp("bases") / "tiny-en-zh", half=True)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty sentences of literary Chinese."""
    file = tmp_path_factory.mktemp("samples") / "style.txt"
    lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:60]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def request_for(tiny: Path, sample: Path) -> Callable[..., Any]:
    """Makes the request of a short customization of the tiny base."""

    def make(output: Path, **changes: Any) -> Any:
        from engine.cli import parser
        from engine.commands import request_of
        from engine.settings import load_settings

        line = [
            "customize",
            "--base",
            tiny,
            "--source",
            "en",
            "--target",
            "zh",
            "--samples",
            sample,
            "--budget",
            "quick",
        ]
        args = parser().parse_args([str(a) for a in (*line, *SHORT, "-o", output)])
        args.settings = load_settings()
        return request_of(args).replace(**changes)

    return make


@pytest.fixture(scope="session")
def bundle(request_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin of the tiny base, made by the main job. Tests only read it."""
    from engine.pipeline import customize

    folder = tmp_path_factory.mktemp("plugins")
    customize(request_for(folder / "style.zip", name="Style"), folder / "workspace")
    return folder / "style.zip"


@pytest.fixture(scope="session")
def base(tiny: Path) -> Any:
    """The tiny base, loaded."""
    from engine.base import BaseModel

    return BaseModel.load(tiny, "en", "zh", device="cpu")
