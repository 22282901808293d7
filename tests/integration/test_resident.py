"""`tailormt translate` through the socket of a running studio: the same output, and by itself wherever that cannot be."""

from __future__ import annotations

import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.settings import load_settings
from engine.serving import resident
from engine.serving.batcher import TranslationSpec
from engine.serving.model_cache import ModelCache
from tests.bases import SENTENCES
from tests.conftest import Ran

LINES = [SENTENCES[0][0], "", SENTENCES[1][0]]
Run = Callable[..., Ran]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder whose path is short: that of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="tm") as folder:
        monkeypatch.setenv("TAILORMT_HOME", f"{folder}/home")
        yield Path(folder) / "home"


@pytest.fixture
def models(home: Path) -> Iterator[ModelCache]:
    """A studio's, answering over this home folder."""
    models = ModelCache(load_settings())
    server = resident.listen(models)
    assert server is not None
    yield models
    server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return file


def work(base: Path, **more: Any) -> TranslationSpec:
    return TranslationSpec.of(str(base), "en", "zh", **more)


def no_base(*arguments: object) -> None:
    raise AssertionError


def test_an_error_is_said_as_ever(tailormt: Run, models: ModelCache, tiny: Path, file: Path) -> None:
    line = ("translate", "--base", tiny, "--source", "en", "--target", "zh", file)
    ran = tailormt(*line, "--plugin", "gone.zip")
    assert ran.code == 2
    assert "gone.zip" in ran.err
    assert tailormt(*line, "--beam", "0").code == 2


def test_the_socket_is_this_users_alone(models: ModelCache, home: Path) -> None:
    path = home / resident.SOCKET_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in home.iterdir() if "socket" in entry.name] == [], "nothing is left beside it"
    assert resident.listen(ModelCache(load_settings())) is None, "one answers already"


def test_a_file_left_behind_is_replaced(home: Path, tiny: Path) -> None:
    home.mkdir()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(home / resident.SOCKET_NAME))
    assert resident.ask(load_settings(), work(tiny), LINES) is None, "nobody listens there"
    server = resident.listen(ModelCache(load_settings()))
    assert server is not None
    assert resident.ask(load_settings(), work(tiny), LINES) is not None
    server.shutdown(socket.SHUT_RDWR)


def test_others_are_left_to_themselves(models: ModelCache, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings()
    assert resident.ask(settings, work(tiny), LINES) is not None
    assert resident.ask(settings.replace(threads=1), work(tiny), LINES) is None
    assert resident.ask(settings, work(tiny), ["a" * (resident.MAX_CHARACTERS + 1)]) is None
    assert resident.ask(settings, work(tiny / "gone"), LINES) is None
    request = {"settings": resident._shared(settings), "work": {}, "texts": LINES, "release": "0.0.1"}
    assert resident._answer(request, models) is None


def test_a_base_at_work_is_not_waited_for(models: ModelCache, tiny: Path) -> None:
    base = models.base(str(tiny), "en", "zh")
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with base.lock:
            begun.set()
            done.wait(300)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(300)
    assert resident.ask(load_settings(), work(tiny), LINES) is None
    done.set()
    thread.join()
    assert resident.ask(load_settings(), work(tiny), LINES) is not None


def test_a_base_that_has_changed_on_disk(models: ModelCache, tiny: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    assert resident.ask(load_settings(), work(copy), LINES) is not None
    first = models.base(str(copy), "en", "zh")
    (copy / "model.safetensors").touch()
    assert resident.ask(load_settings(), work(copy), LINES) is not None
    assert models.base(str(copy), "en", "zh") is not first


@pytest.mark.parametrize("said", [b"", b"no\n", b"[]\n", b'{"translations": ["too few"]}\n'])
def test_whoever_answers_otherwise(home: Path, tiny: Path, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "ANSWER_SECONDS", 0.4)
    home.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / resident.SOCKET_NAME))
        server.listen()
        held: list[socket.socket] = []

        def answer() -> None:
            held.append(server.accept()[0])
            held[0].sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        assert resident.ask(load_settings(), work(tiny), LINES) is None
        held[0].close()


def test_where_no_socket_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILORMT_HOME", str(tmp_path / ("long" * 30)))
    assert resident.listen(ModelCache(load_settings())) is None
    assert resident.ask(load_settings(), work(tmp_path), LINES) is None


def test_same_output(tailormt: Run, home: Path, tiny: Path, bundle: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("translate", "--base", tiny, "--source", "en", "--target", "zh", file)
    ways = [
        line,
        (*line, "--json"),
        (*line, "--plugin", bundle, "--strength", "0.7", "--beam", "2"),
        (*line, "--plugin", bundle, "--strength", "0"),
    ]
    alone = [tailormt(*way) for way in ways]
    models = ModelCache(load_settings())
    server = resident.listen(models)
    assert server is not None
    with monkeypatch.context() as patch:
        patch.setattr("engine.cli.translate.load_base", no_base)
        through = [tailormt(*way) for way in ways]
    server.shutdown(socket.SHUT_RDWR)
    assert [(ran.code, ran.out) for ran in through] == [(0, ran.out) for ran in alone]
    base = models.held_base(str(tiny), "en", "zh")
    assert base is not None
    assert models.cached_plugin(str(bundle), base) is not None, "the studio took the plugin"
