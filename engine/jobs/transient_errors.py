"""Transient errors, after which a job is tried again."""

from __future__ import annotations

from engine.errors import Cancelled, InputError, MissingError, StorageError, TransientError

# By name, so that no library is loaded for it; what Python's own OSErrors do not cover.
NAMES = frozenset({
    "TransportError", "TimeoutException", "ConnectError", "RemoteProtocolError",  # httpx
    "OperationalError", "InterfaceError",  # databases
    "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError", "IncompleteReadError",
    "ClientConnectionError", "ServerTimeoutError", "ServerDisconnectedError",  # object stores
})  # fmt: skip
BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})  # answers of services that ask to come again
STAYS = ("disk is full", "no space", "no permission", "read-only", "readonly", "not a database", "malformed")


def may_pass(error: BaseException) -> bool:
    """Whether the same work may succeed a little later: nothing was wrong with what the user gave, nor with this machine.

    What an error was caused by counts too: a StorageError whose cause is a broken connection may pass, one that says that
    the disk is full does not.
    """
    if isinstance(error, (Cancelled, InputError, MissingError)):
        return False
    if isinstance(error, StorageError) and any(words in str(error).lower() for words in STAYS):
        return False
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        if isinstance(one, (TransientError, ConnectionError, TimeoutError)):
            return True
        if any(kind.__name__ in NAMES for kind in type(one).__mro__):
            return True
        if _status(one) in BUSY:
            return True
        one = one.__cause__ or one.__context__
    return False


def _status(error: BaseException) -> int | None:
    """The status of an answer that an error holds, as httpx and botocore have it."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        answer = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return answer if isinstance(answer, int) else None
    status = getattr(answer, "status_code", None)
    return status if isinstance(status, int) else None
