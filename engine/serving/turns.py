"""Who has waited, for how long, and whose turn it is: one request as a ticket, and the order of clients in a queue."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator

from engine.core.progress import Progress
from engine.errors import Cancelled, TailorError

EVERY_TEXT = 20  # bytes that a text counts for beside its own
MOST_CLIENTS = 1000  # of which it is remembered what they had


class OverloadedError(TailorError):
    """More is waiting to be translated than can be done soon."""


class DeadlineError(TailorError):
    """A request was not finished in its time."""


class Ticket(Progress):
    """One request: whose it is, and until when it is worth any work. `client` is an account, a token or an address.

    It is the progress of the request's own work too, which so ends where the request does.
    """

    def __init__(self, client: str = "", seconds: float = 0.0) -> None:
        """The request has `seconds` from now on; 0: as long as it takes."""
        super().__init__()
        self.client, self.seconds = client, seconds
        self._end = time.monotonic() + seconds if seconds else math.inf
        self._left = threading.Event()

    def leave(self) -> None:
        """Nobody waits for the answer any more."""
        self._left.set()

    def check(self) -> None:
        """Raises Cancelled where the client has gone, DeadlineError after the time."""
        if self._left.is_set():
            raise Cancelled(
                "The client that requested this translation has disconnected, so the rest was not translated."
            )
        if time.monotonic() > self._end:
            raise DeadlineError(
                "This translation took longer than {seconds:g} s (the setting translation_seconds). Send less at once, or a "
                "file as a document.",
                seconds=self.seconds,
            )


def weight(text: str | tuple[str, ...]) -> int:
    """How much work a text is, or the texts of a pair: its bytes in UTF-8, which go with its tokens in every script."""
    parts = (text,) if isinstance(text, str) else text
    return EVERY_TEXT + sum(len(part.encode(errors="surrogatepass")) for part in parts)


class Shares:
    """Places of which each client may have `limit` at once, so that none has them all. Safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Within the block the client has a place. Raises OverloadedError where it has as many as it may."""
        with self._lock:
            if self._taken[client] >= self.limit:
                raise OverloadedError(
                    "{count} of your files are already being read or written. Wait until one is done, then try again.",
                    count=self.limit,
                )
            self._taken[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[client] -= 1
                self._taken += Counter()  # without those who have none


class Turns:
    """Clients in the order of their turns: first who had least, by weight (start-time fair queueing).

    Who comes back begins where the others are: nobody saves up turns by waiting, and nobody is rid of what they had by asking anew.
    """

    def __init__(self) -> None:
        self._had: dict[str, float] = {}
        self._now = 0.0

    def had(self, client: str) -> float:
        """What the client had; the least comes next."""
        return max(self._had.get(client, 0.0), self._now)

    def next(self, client: str) -> None:
        """It is this client's turn, whatever others get with it."""
        self._now = self.had(client)
        if len(self._had) > MOST_CLIENTS:
            self._had = {name: had for name, had in self._had.items() if had > self._now}

    def give(self, client: str, work: float) -> None:
        """The client gets so much."""
        self._had[client] = self.had(client) + work
