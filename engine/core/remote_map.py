"""Work that can be distributed over several machines: same parts and same order as on one machine, so same results.

    with use_remote_mapper(mapper):
        results = map_remotely("engine.decoding.remote:BackTranslate", lambda: arguments, parts, progress)

Steps of the main job divide their work into parts and offer them. Usually nobody takes them, and the step processes them
locally. A part is processed by the same code either way and never depends on other parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from engine.core.progress import Progress

FEWEST = 2  # parts; a single one is faster to process locally


class RemoteMapper(Protocol):
    """A service that can process parts elsewhere."""

    def take(self, stage: str, arguments: Mapping[str, Any], parts: Sequence[Any], progress: Progress) -> Iterator[Any] | None:
        """The result of each part, in order, as they arrive; None if there is no capacity now.

        `stage` is the dotted name of a class, as module:Class, that is created once per machine with the `arguments` and called
        with each part. Arguments, parts and results must be representable in JSON.
        """


_now: list[RemoteMapper] = []  # innermost last; a job's process has at most one


@contextlib.contextmanager
def use_remote_mapper(mapper: RemoteMapper | None) -> Iterator[None]:
    """Offer parts to `mapper` for the duration of the block."""
    if mapper is None:
        yield
        return
    _now.append(mapper)
    try:
        yield
    finally:
        _now.remove(mapper)


def map_remotely(
    stage: str, arguments: Callable[[], Mapping[str, Any]], parts: Sequence[Any], progress: Progress
) -> Iterator[Any] | None:
    """The results of the parts, in order; None if the caller must process them."""
    if not _now or len(parts) < FEWEST:
        return None
    return _now[-1].take(stage, arguments(), parts, progress)
