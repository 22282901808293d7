"""Tickets of requests, with their client and deadline, and the fair order of clients in a queue."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator

from engine.core.progress import Progress
from engine.errors import Cancelled, TailorError

EVERY_TEXT = 20  # bytes added to the weight of each text
MOST_CLIENTS = 1000  # remembered before idle ones are dropped


class OverloadedError(TailorError):
    """A limit on queued or concurrent work is reached."""


class DeadlineError(TailorError):
    """A request was not finished by its deadline."""


class Ticket(Progress):
    """A request's client (an account, a token or an address) and deadline.

    It is also the progress of the request's work, so that the work ends with the request.
    """

    def __init__(self, client: str = "", seconds: float = 0.0) -> None:
        """The deadline is `seconds` from now; 0: no deadline."""
        super().__init__()
        self.client, self.seconds = client, seconds
        self._end = time.monotonic() + seconds if seconds else math.inf
        self._left = threading.Event()

    def leave(self) -> None:
        """Mark the client as disconnected."""
        self._left.set()

    def check(self) -> None:
        """Raises Cancelled if the client has disconnected, DeadlineError after the deadline."""
        if self._left.is_set():
            raise Cancelled("The client that requested this translation has disconnected, so the rest was not translated.")
        if time.monotonic() > self._end:
            raise DeadlineError(
                "This translation took longer than {seconds:g} s (the setting translation_seconds). Send less at once, or a "
                "file as a document.",
                seconds=self.seconds,
            )


def weight(text: str | tuple[str, ...]) -> int:
    """The estimated work for a text or pair: its UTF-8 bytes, which correlate with its tokens in every script."""
    parts = (text,) if isinstance(text, str) else text
    return EVERY_TEXT + sum(len(part.encode(errors="surrogatepass")) for part in parts)


class Shares:
    """Limits the slots that each client holds at once to `limit`. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def slot(self, client: str) -> Iterator[None]:
        """Hold a slot for the client during the block. Raises OverloadedError if the client is at its limit."""
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
                self._taken += Counter()  # drops clients without slots


class Turns:
    """Start-time fair queueing: the client that has received the least work, by weight, is next.

    Returning clients start at the current virtual time, so that idle time earns no credit and new requests clear no debt.
    """

    def __init__(self) -> None:
        self._had: dict[str, float] = {}
        self._now = 0.0

    def had(self, client: str) -> float:
        """The virtual time of the client; the lowest is next."""
        return max(self._had.get(client, 0.0), self._now)

    def next(self, client: str) -> None:
        """Advance the virtual time to this client, whose turn it is."""
        self._now = self.had(client)
        if len(self._had) > MOST_CLIENTS:
            self._had = {name: had for name, had in self._had.items() if had > self._now}

    def give(self, client: str, work: float) -> None:
        """Add this amount of work to the client."""
        self._had[client] = self.had(client) + work
