"""What no reader may do with any input: raise a programmer's error, work longer than it may, touch files that are not its own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Guard", "Hang", "Trespass"]

SECONDS = 5.0
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What changes the file system, and which of its arguments are paths.
CHANGES = {
    "os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.chmod": 1, "os.truncate": 1,
    "shutil.rmtree": 1, "shutil.copyfile": 2, "shutil.move": 2,
}  # fmt: skip
NEVER = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class")
# The limited process in which files are read; it gets nothing else to run.
READER = ["-m", "engine.workflows.read_apart"]


class Hang(BaseException):
    """An input took longer than it may."""


class Trespass(BaseException):
    """An input made its reader write, or read the canary, where it has no business."""


class Guard:
    """`with guard(folder):` around the work on one input. An audit hook cannot be taken out again: make one a process.

    `allowed` are folders that may be written besides; `canary` is a file that inputs name and nobody may open.
    """

    def __init__(self, canary: Path, allowed: tuple[Path, ...] = ()) -> None:
        self.canary, self.allowed = os.path.realpath(canary), [os.path.realpath(path) for path in allowed]
        self.folder = ""
        self.found: list[str] = []
        self.thread = 0
        sys.addaudithook(self._heard)

    @contextlib.contextmanager
    def __call__(self, folder: Path, seconds: float = SECONDS) -> Iterator[None]:
        """Raises Hang or Trespass. The clock counts this process's time on the processor, and only runs in the main thread."""
        self.found.clear()
        self.folder = os.path.realpath(folder)
        clock = threading.current_thread() is threading.main_thread()
        before: Any = signal.signal(signal.SIGPROF, _too_long) if clock else None
        if clock:  # of the processor: a busy machine is not a hang
            signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            self.folder = ""
            if clock:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.signal(signal.SIGPROF, before)
        if self.found:
            raise Trespass(self.found[0])

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike):
                name = os.path.realpath(os.fsdecode(path)) if b"\0" not in os.fsencode(path) else ""
                if name == self.canary or (isinstance(flags, int) and flags & WRITES and not self._own(name)):
                    self._note(f"opens {name} ({flags})")
        elif event in CHANGES:
            count = CHANGES[event]
            folders = [fd for fd in arguments[count:] if isinstance(fd, int)][-count:]  # descriptors of folders, -1: none
            for index, path in enumerate(arguments[:count]):
                if isinstance(path, str | bytes | os.PathLike):
                    folder = folders[index] if len(folders) > index else -1
                    above = os.path.realpath(f"/proc/self/fd/{folder}") if folder >= 0 else os.getcwd()
                    if not self._own(os.path.realpath(os.path.join(above, os.fsdecode(path)))):
                        self._note(f"{event} {os.fsdecode(path)}")
        elif event in NEVER and not (event == "subprocess.Popen" and list(arguments[1])[1:] == READER):
            self._note(f"{event} {arguments!r:.200}")

    def _own(self, name: str) -> bool:
        return any(name == folder or name.startswith(folder + os.sep) for folder in (self.folder, "/dev", *self.allowed))

    def _note(self, words: str) -> None:
        stack = "".join(traceback.format_stack(limit=12)[:-2])
        if "importlib" in stack and "__pycache__" in words:  # a module loaded for the first time
            return
        self.found.append(f"{words}\n{stack}")


def _too_long(number: int, frame: Any) -> None:
    raise Hang("longer than it may take\n" + "".join(traceback.format_stack(frame, limit=12)))


Check = Callable[[bytes, Path], object]
