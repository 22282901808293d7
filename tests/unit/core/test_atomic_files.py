"""Where results are written: whole or not at all, and never in the place of a device."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core.atomic_files import atomic_write, check_writable
from engine.errors import StorageError


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fail() -> None:
        with atomic_write(path, "the result") as temporary:
            temporary.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    with atomic_write(path, "the result") as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["result.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_stays_a_pipe_and_carries_what_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe, "the result")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    with atomic_write(pipe, "the result") as temporary:
        temporary.write_text("雨停了。", encoding="utf-8")
    reader.join(300)
    assert read == ["雨停了。"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_translation_goes_into_a_pipe_and_does_not_take_its_place(
    tmp_path: Path, tiny: Path, tailormt: Callable[..., Any]
) -> None:
    texts, plain, pipe = tmp_path / "texts.txt", tmp_path / "plain.txt", tmp_path / "pipe"
    texts.write_text("The rain stopped.\n", encoding="utf-8")
    command = ("translate", "--base", tiny, "--source", "en", "--target", "zh", texts, "-o")
    assert tailormt(*command, plain).code == 0
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert tailormt(*command, pipe).code == 0
    reader.join(300)
    assert read == [plain.read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        check_writable(tmp_path, "the result")
