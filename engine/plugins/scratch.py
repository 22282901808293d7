"""The process with limits of time and memory in which an untrusted bundle is read for the first time.

Before it has finished, only the bundle's directory and two small JSON files are read elsewhere: the effect of a file on the
program that reads it is only known afterwards.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from engine.base import BaseModel
from engine.core import limited_process
from engine.core.json_object import Json
from engine.core.limited_process import Limits, OverLimitError, TooLargeError, TooLongError
from engine.errors import BundleError, TransientError
from engine.plugins.bundle import open_bundle

SECONDS = 120.0
BYTES_PER_SECOND = 50e6  # of the unpacked files, even with a slow disk and SHA-256
ALLOWANCE = 1 << 30  # bytes for Python, its libraries and the activations of three sentences
COPIES = 3  # of the base and of the bundle at the same time: as read, as converted, as loaded
TURNS = threading.BoundedSemaphore(2)  # bundles that are tried at the same time
SENTENCES = 3
PLAIN = ["1.", "2.", "3."]  # if no general text of the source language is bundled


def limits_of(path: Path, base: BaseModel | None) -> Limits:
    """Limits by the sizes of the base and of the unpacked bundle, within the free memory.

    Raises BundleError, or TransientError if too little memory is free to try any bundle.
    """
    import psutil

    with open_bundle(path) as bundle:
        unpacked = sum(entry.file_size for entry in bundle.infolist())
    weights = sum(weight.numel() * 4 for weight in base.model.parameters()) if base else 0  # on the CPU: float32
    free = int(psutil.virtual_memory().available)
    if free < ALLOWANCE + weights:
        raise TransientError(
            "Too little memory is free to check a bundle: {free:,.0f} MiB. Close other programs and try again.", free=free / 2**20
        )
    memory = ALLOWANCE + COPIES * (weights + unpacked)
    return Limits(SECONDS + unpacked / BYTES_PER_SECOND, min(memory, free))


def request_for(path: Path, base: BaseModel | None) -> Json:
    """The request to the process: the bundle, the base to load and the sentences to translate."""
    request: Json = {"bundle": str(path.absolute())}
    if base is not None:
        from engine.core.settings import load_settings
        from engine.corpora.general_text import general_sentences

        sentences = (general_sentences(load_settings().assets_dir, base.source) or PLAIN)[:SENTENCES]
        request |= {"base": str(base.folder), "source": base.source, "target": base.target, "sentences": sentences}
    return request


def answers(path: Path, base: BaseModel | None, cache: Path | None, limits: Limits | None = None) -> Iterator[Json]:
    """The answers of `engine.plugins.trial`, as they arrive; the unpacked files are moved to `cache` if all are good.

    Raises BundleError if the process exceeds its time or memory or ends before its last answer, TransientError if too many
    other bundles are being tried.
    """
    limits = limits or limits_of(path, base)
    if not TURNS.acquire(timeout=SECONDS):
        raise TransientError("Other bundles are being checked. Try again in a few minutes.")
    try:
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".trial-", dir=cache) as folder:
            request = request_for(path, base) | {"cache": folder}
            succeeded = True
            for answer in limited_process.answers("engine.plugins.trial", request, limits):
                succeeded = bool(answer["ok"])
                yield answer
            if succeeded and cache is not None:
                for unpacked in Path(folder).iterdir():
                    with contextlib.suppress(OSError):  # it exists already
                        unpacked.rename(cache / unpacked.name)
    except TooLargeError:
        raise too_much_memory(path, limits.memory) from None
    except TooLongError:
        raise BundleError(
            "{path}: it did not translate three sentences within {count:.0f} s. Do not use it.", path=path, count=limits.seconds
        ) from None
    except OverLimitError:
        raise BundleError("{path}: translating three sentences ended the process. Do not use it.", path=path) from None
    finally:
        TURNS.release()


def too_much_memory(path: Path | str, memory: int) -> BundleError:
    """The error for a bundle that needs more than `memory` bytes."""
    return BundleError(
        "{path}: trying it needs more than {memory:,.0f} MiB of memory, more than a plugin of its size should. Do not use it.",
        path=path,
        memory=memory / 2**20,
    )
