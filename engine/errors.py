"""The exception tree: every message here is a sentence for a user, saying what is wrong, where, and what to do.

TailorError
 ├─ InputError          a file, folder or value that the user gave
 │   ├─ CorpusError       samples that cannot be read or used
 │   ├─ ModelError        a folder that is no usable base model
 │   ├─ BundleError       a plugin bundle that is damaged, unsafe or made for another base
 │   └─ OptionError       a setting out of its range
 ├─ MissingError        something optional is not installed or not on disk
 ├─ StorageError        the disk is full or a folder cannot be written
 ├─ PassingError        a service or a place far away that gives no answer now, and may a minute later
 └─ Cancelled           the user stopped the work; what was done is kept and can be resumed

The command line turns a TailorError into one line on stderr and exit code 2, the studio into a toast.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "BundleError",
    "Cancelled",
    "CorpusError",
    "InputError",
    "MissingError",
    "ModelError",
    "OptionError",
    "PassingError",
    "StorageError",
    "TailorError",
    "storage_errors",
]


class TailorError(Exception):
    """Base of all errors whose message is meant for the user."""

    exit_code = 2


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


class MissingError(TailorError):
    """Something optional is needed and not installed or not on disk."""


class StorageError(TailorError):
    """The disk is full, or a folder cannot be written."""


class PassingError(TailorError):
    """A service or a place far away gives no answer now, and may a minute later: jobs try again by themselves."""


class Cancelled(TailorError):  # noqa: N818 - not an error but a wish
    """The user stopped the work; finished steps and the last checkpoint are kept."""


@contextlib.contextmanager
def storage_errors(what: str, where: Path) -> Iterator[None]:
    """Turn the operating system's write errors into a StorageError naming what was being written and where."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"The disk is full: {what} could not be written to {where}. Free some space and run it again; "
                "it goes on from the last complete step."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                f"{what[:1].upper() + what[1:]} could not be written to {where}: no permission. Choose another folder."
            ) from error
        raise
    except Exception as error:
        # safetensors reports a full disk as its own error type, with the system's words inside.
        if "No space left on device" in str(error):
            raise StorageError(
                f"The disk is full: {what} could not be written to {where}. Free some space and run it again; "
                "it goes on from the last complete step."
            ) from error
        raise
