"""Errors of the disk and of the database as users meet them: none tells where the server keeps its files."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from engine.core.atomic_files import make_parent
from engine.core.settings import Settings
from engine.errors import StorageError, TailorError, storage_errors
from engine.store import database
from studio.api import create_api
from studio.api.serializers import job
from studio.components.layout import handle_errors
from studio.i18n.translate import speaking, translate_message
from studio.services.service import Service
from tests.unit.studio.test_api import HERE


def raised(inside: AbstractContextManager[None], error: Exception) -> TailorError:
    with pytest.raises(TailorError) as caught, inside:
        raise error
    return caught.value


def errors_at(folder: Path) -> Iterator[TailorError]:
    """One of each kind."""
    for number in (errno.ENOSPC, errno.EACCES):
        yield raised(storage_errors("the samples", folder / "my files" / "a.txt"), OSError(number, "no", folder))
    url = database.redacted_url(database.parse(f"sqlite:///{folder}/tailor.db"))
    for words in ("disk is full", "locked", f"unable to open '{folder}/tailor.db'", "malformed", f"no {folder}/x.db"):
        yield raised(database.sentences(url), OperationalError("", {}, Exception(words)))
    (folder / "file").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        make_parent(folder / "file" / "a.txt", "the plugin")
    yield caught.value


def test_no_storage_error_tells_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    service = Service(Settings(home=str(tmp_path / "home"), device="cpu"))
    api = TestClient(create_api(service), raise_server_exceptions=False, **HERE)  # type: ignore[arg-type]
    messages: list[str] = []
    monkeypatch.setattr(gr, "Warning", lambda sentence, **more: messages.append(sentence))
    failed = service.store.jobs.enqueue("prepare", {})
    errors = list(errors_at(tmp_path))
    for error in errors:
        assert str(tmp_path) in str(error), "a command tells it"

        def fail(*arguments: object, error: TailorError = error, **named: object) -> None:
            raise error

        handle_errors(fail)()
        for code in ("en", "zh"):
            with speaking(code):
                messages.append(translate_message(error.message))
        with monkeypatch.context() as patch:
            patch.setattr(type(service.store.projects), "list", fail)
            messages += [api.get(address).text for address in ("/api/v1/projects", "/languages", "/v2/languages")]
        messages.append(job(replace(failed, error=error.message)).error)
    assert len(messages) == 7 * len(errors)
    assert not [message for message in messages if str(tmp_path) in message]
    assert sum("my files" not in message and "a.txt" in message for message in messages) >= 14
    assert str(tmp_path) in caplog.text
