"""Batches that shrink when memory runs out: halved once, and the work continues; a second time is an error.

fit = Fit("batch_tokens")
for batch in length_batches(lengths, 4096):
    fit.each(batch, work)      # work(some of the batch's rows), again with half of them where they did not fit
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
    """Python's, torch's on the GPU (a class of its own), and torch's on the CPU (a RuntimeError with these words)."""
    words = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and ("out of memory" in words or "can't allocate memory" in words))
    )


def free_memory() -> None:
    """Give back what the failed batch has left behind."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def reuse_memory() -> None:
    """Have the C library keep freed blocks: else each large tensor is mapped and zeroed by the kernel anew, which takes a tenth to
    half of the time of an update on a CPU. GNU's library alone has these switches; elsewhere nothing happens.
    """
    import ctypes

    trim_threshold, top_pad, mmap_max = -1, -2, -4  # of malloc.h
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**28)):
            mallopt(parameter, value)


def halves(rows: Sequence[int]) -> list[list[int]]:
    """Two halves; one part where there is nothing to halve."""
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
    """One for each loop over batches. `setting` is what a user lowers where half a batch is too big too."""

    def __init__(self, setting: str) -> None:
        self.setting, self.halved = setting, False

    def run(self, rows: Sequence[int], work: Callable[[list[int]], None]) -> None:
        """Do the work for the rows, in halves once memory has run out. Work that ran out of memory is restarted.

        Raises TailorError where half of a batch does not fit, or a batch of one row.
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
        # The error must be gone, with the tensors of its frames, before memory can be given back.
        try:
            work(rows)
        except Exception as error:
            if not out_of_memory(error):
                raise
            return False
        return True
