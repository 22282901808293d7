"""What slow tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.core.progress import Progress
from tests.bases import SAMPLES, SENTENCES
from tests.conftest import Ran


@pytest.fixture
def benches_in_this_process(tailormt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench runs its commands here: a process for each takes seconds to start. test_bench_methods.py starts them too."""

    def run(command: Sequence[str], progress: Progress) -> tuple[int, str, str]:
        assert list(command[1:3]) == ["-m", "engine.cli"]
        progress.check()
        ran = tailormt(*command[3:])
        return ran.code, ran.out, ran.err

    monkeypatch.setattr("engine.workflows.benchmark.methods.run_program", run)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The layout of the public data, with texts of our own."""
    folder = tmp_path / "data"
    (folder / "mtsc").mkdir(parents=True)
    (folder / "heldout").mkdir()
    style = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:80]
    (folder / "mtsc/train.luxun.random.zh").write_text("\n".join(style[:60]) + "\n", encoding="utf-8")
    (folder / "mtsc/dev.luxun.random.zh").write_text("\n".join(style[60:]) + "\n", encoding="utf-8")
    for index, language in enumerate(("en", "zh")):
        text = "".join(f"{pair[index]}\n" for pair in SENTENCES)
        (folder / f"mtsc/test.luxun.{language}").write_text(text, encoding="utf-8")
    pairs = "".join(f"{a}\t{b}\n" for a, b in SENTENCES)
    (folder / "heldout/ntrex.en-zh.tsv").write_text(pairs, encoding="utf-8")
    return folder
