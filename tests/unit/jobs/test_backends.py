"""Which way the processes of jobs are started."""

from __future__ import annotations

import sys
from multiprocessing import forkserver

import pytest

from engine.core.settings import Settings
from engine.jobs.backends import open_backend
from engine.jobs.backends.local import LocalBackend


@pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux")
@pytest.mark.parametrize("error", [OSError("no sockets"), RuntimeError("no main guard")])
def test_where_nothing_can_be_forked_processes_are_started_anew(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr(forkserver, "ensure_running", refuse)
    assert type(open_backend(Settings(), lasting=True)) is LocalBackend
