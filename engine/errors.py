"""The exception tree: every message here is a sentence for a user, saying what is wrong, where, and what to do.

TailorError
 ├─ InputError          a file, folder or value that the user gave
 │   ├─ CorpusError       samples that cannot be read or used
 │   ├─ ModelError        a folder that is no usable base model
 │   ├─ BundleError       a plugin bundle that is damaged, unsafe or made for another base
 │   ├─ OptionError       a setting out of its range
 │   └─ NotFoundError     a row of the store that there is not, or no longer
 ├─ MissingError        something optional is not installed or not on disk
 ├─ StorageError        the disk is full or a folder cannot be written
 ├─ TransientError      a service or a place far away that gives no answer now, and may a minute later
 └─ Cancelled           the user stopped the work; what was done is kept and can be resumed

An error is raised with a template and the values that stand in it, `InputError("The file {name} is empty.", name=name)`: its
sentence is English, and the studio says it in the reader's language (see `engine.messages`).
The command line turns a TailorError into one line on stderr and exit code 2, the studio into a toast.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.messages import Message


class TailorError(Exception):
    """Base of all errors whose message is meant for the user."""

    exit_code = 2

    def __init__(self, template: str = "", /, **params: Any) -> None:
        self.message = Message(template, **params)
        super().__init__(self.message)

    @property
    def code(self) -> str:
        """Which error it is, for programs."""
        return self.message.code

    @property
    def params(self) -> Mapping[str, Any]:
        """The values in the sentence."""
        return self.message.params


class InputError(TailorError):
    """Something the user gave cannot be used."""


class CorpusError(InputError):
    """Samples that cannot be read or used."""


class ModelError(InputError):
    """A folder or hub id that is no usable base model."""


class BundleError(InputError):
    """A plugin bundle that is damaged, unsafe, or made for another base."""


class OptionError(InputError):
    """A setting that is unknown or out of its range."""


class NotFoundError(InputError):
    """There is nothing of that number: it may have been deleted."""


class MissingError(TailorError):
    """Something optional is needed and not installed or not on disk."""


class StorageError(TailorError):
    """The disk is full, or a folder cannot be written."""


class TransientError(TailorError):
    """A service or a place far away gives no answer now, and may a minute later: jobs try again by themselves."""


class Cancelled(TailorError):  # noqa: N818 - not an error but a request
    """The user stopped the work; finished steps and the last checkpoint are kept."""


@contextlib.contextmanager
def storage_errors(what: str, where: Path) -> Iterator[None]:
    """Turn the operating system's write errors into a StorageError naming what was being written and where."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(what, where) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                "{what} could not be written to {where}: no permission. Choose another folder.", what=capitalised(what), where=where
            ) from error
        raise
    except Exception as error:
        # safetensors reports a full disk as its own error type, with the system's words inside.
        if "No space left on device" in str(error):
            raise _full(what, where) from error
        raise


def _full(what: str, where: Path) -> StorageError:
    return StorageError(
        "The disk is full: {what} could not be written to {where}. Free some space and run it again; it goes on from the "
        "last complete step.",
        what=Message(what),
        where=where,
    )


def first_line(error: object) -> str:
    """What an error of a library says first, without a full stop; its name where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def capitalised(what: str) -> Message:
    """A name of something as a sentence begins with it; other languages have it as it is."""
    return Message.restore(what[:1].upper() + what[1:], what, {})
