"""Work that may be done on several machines at once: the same parts as on one, in the same order, so the same results.

    with use_remote_mapper(mapper):
        results = map_remotely("engine.decoding.remote:BackTranslate", lambda: arguments, parts, progress)

Steps of the main job cut their work into parts and offer them. Where nobody takes them, which is the usual case, the
step does them itself. A part is done by the same code either way and never depends on its neighbours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from engine.core.progress import Progress

FEWEST = 2  # parts; one alone is done faster here


class RemoteMapper(Protocol):
    """What can do parts elsewhere."""

    def take(
        self, stage: str, arguments: Mapping[str, Any], parts: Sequence[Any], progress: Progress
    ) -> Iterator[Any] | None:
        """The result of each part, in order, as they come; None where there is no room now.

        `stage` is the dotted name of a class, as module:Class, that is made once a machine with the `arguments` and called
        with a part. Arguments, parts and results are what JSON can hold.
        """


_now: list[RemoteMapper] = []  # the innermost last; a job's process has one at most


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
    """The results of the parts, in order, where somebody does them; None: the caller does."""
    if not _now or len(parts) < FEWEST:
        return None
    return _now[-1].take(stage, arguments(), parts, progress)
