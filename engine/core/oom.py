"""Batches that shrink when memory runs out: they are halved once and the work continues; a second time is an error.

fit = HalveOnOom("batch_tokens")
for batch in length_batches(lengths, 4096):
    fit.run(batch, work)      # work(rows of the batch), repeated with each half if they do not fit
"""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
from collections.abc import Callable, Sequence

from engine.errors import TailorError

log = logging.getLogger(__name__)


def out_of_memory(error: BaseException) -> bool:
    """Whether it is Python's error, torch's on the GPU (a separate class) or torch's on the CPU (a RuntimeError by its message)."""
    words = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and ("out of memory" in words or "can't allocate memory" in words))
    )


def free_memory() -> None:
    """Release the memory left behind by the failed batch."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def reuse_memory() -> None:
    """Make the C library keep freed blocks; otherwise the kernel maps and zeroes each large tensor again.

    That takes a tenth to half of the time of an update on a CPU. Only GNU's library supports this; elsewhere nothing happens.
    """
    import ctypes

    trim_threshold, top_pad, mmap_max = -1, -2, -4  # from malloc.h
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**28)):
            mallopt(parameter, value)


def halves(rows: Sequence[int]) -> list[list[int]]:
    """Two halves; a single part if the rows cannot be halved."""
    middle = (len(rows) + 1) // 2
    return [list(part) for part in (rows[:middle], rows[middle:]) if part]


def too_big(setting: str) -> TailorError:
    """The error to raise, naming the setting to lower."""
    return TailorError(
        "There is not enough memory, even for batches of half the size. Lower {setting}, or close other programs; finished steps "
        "are not repeated.",
        setting=setting,
    )


class HalveOnOom:
    """Runs one loop over batches; `setting` is what the user should lower if half a batch does not fit either."""

    def __init__(self, setting: str) -> None:
        self.setting, self.halved = setting, False

    def run(self, rows: Sequence[int], work: Callable[[list[int]], None]) -> None:
        """Do the work for the rows, in halves once memory has run out. Work that ran out of memory is restarted.

        Raises TailorError if half of a batch, or a batch of one row, does not fit.
        """
        if not self.halved:
            if self._fits(list(rows), work):
                return
            self.halved = True
            log.warning("the memory ran out: batches are half the size from now on")
            free_memory()
            if len(rows) < 2:
                raise too_big(self.setting)
        for part in halves(rows):
            if not self._fits(part, work):
                raise too_big(self.setting)

    @staticmethod
    def _fits(rows: list[int], work: Callable[[list[int]], None]) -> bool:
        # The error must be gone, with the tensors of its frames, before memory can be released.
        try:
            work(rows)
        except Exception as error:
            if not out_of_memory(error):
                raise
            return False
        return True
