"""The process in which a bundle is tried: its limits hold, and the process that waits for it reads nothing of the bundle."""

from __future__ import annotations

import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.base import BaseModel
from engine.errors import BundleError, TransientError
from engine.plugins import Plugin, import_checks, scratch, trial
from engine.plugins.bundle import CHUNK, open_bundle
from engine.plugins.repack import amend

pytestmark = pytest.mark.slow

Checks = Callable[[Path], list[import_checks.Check]]


@pytest.fixture
def checks(base: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checks:
    """The checks as the studio makes them: with the process, and without loading anything here."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a bundle is loaded outside the process that tries it")

    monkeypatch.setattr(import_checks, "answers", scratch.answers)
    for name in ("check_bytes", "check_tensors", "read_bundle_text"):
        monkeypatch.setattr(trial, name, refuse)
    monkeypatch.setattr(Plugin, "load", refuse)
    return lambda path: list(
        import_checks.check_bundle(path, base=lambda: base, direction=("en", "zh"), cache=tmp_path / "cache", shown="a.zip")
    )


def test_a_good_bundle_is_tried_in_a_process_of_its_own(bundle: Path, checks: Checks, tmp_path: Path) -> None:
    result = checks(bundle)
    assert [check.name for check in result if check.ok] == list(import_checks.TITLES)
    (unpacked,) = (tmp_path / "cache").iterdir()
    assert (unpacked / "memory.safetensors").exists(), "it need not be unpacked again"


def test_a_bundle_that_grows_is_refused_and_the_studio_stays_as_it_is(
    request_for: Callable[..., Any], checks: Checks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.workflows.customize.pipeline import customize

    request = request_for(tmp_path / "good.zip", method="ngram_memory", method_options={})
    customize(request, tmp_path / "workspace")
    pieces = random.Random(1).choices(["[],", "[[]],", "{},", "[{}],", "[1],"], k=10_000)
    with (tmp_path / "pairs").open("w") as file:  # a line that is 20 times as large in memory
        file.write("[")
        for _ in range(1000):
            file.writelines(pieces)
        file.write("[]]\n")
    amend(tmp_path / "good.zip", tmp_path / "bomb.zip", files={"pairs.jsonl": tmp_path / "pairs"})
    monkeypatch.setattr(scratch, "ALLOWANCE", 400 << 20)
    me = psutil.Process()
    before = me.memory_info().rss
    result = checks(tmp_path / "bomb.zip")
    assert me.memory_info().rss - before < 20 << 20
    assert result[-1].name == "loading"
    assert result[-1].sentence.startswith("a.zip: trying it needs more than 5")
    assert result[-1].sentence.endswith(" MiB of memory, more than a plugin of its size should. Do not use it.")
    assert result[-1].sentence.code == "path-trying-it-needs-more-than-memory-mib"  # type: ignore[attr-defined]
    assert list((tmp_path / "cache").iterdir()) == [], "nothing of it is kept"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (scratch.Limits(0.2, 8 << 30), "did not translate three sentences within 0 s"),
        # a library whose own allocation fails may abort instead of raising MemoryError
        (scratch.Limits(60, 60 << 20), "needs more than 60 MiB of memory|translating three sentences ended the process"),
    ],
)
def test_the_limits_end_the_process(limits: scratch.Limits, words: str, bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=words):
        list(scratch.answers(bundle, base, tmp_path / "cache", limits))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_process_that_ends_early_is_a_refusal(
    bundle: Path, base: BaseModel, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    last = checks(bundle)[-1]
    assert (last.name, last.ok) == ("checksums", False)
    assert last.sentence == "a.zip: translating three sentences ended the process. Do not use it."


def test_no_bundle_is_tried_where_there_is_no_memory_for_any(
    bundle: Path, base: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "ALLOWANCE", 1 << 60)
    with pytest.raises(TransientError, match="Too little memory is free"):
        scratch.limits_of(bundle, base)


def test_the_directory_of_a_zip_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as many:
        for number in range(CHUNK // 50):
            many.writestr(f"{number}", b"")
    with pytest.raises(BundleError, match="its directory is too long"), open_bundle(tmp_path / "many.zip"):
        pass
