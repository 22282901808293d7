"""Transient errors, after which a job is retried."""

from __future__ import annotations

from engine.errors import Cancelled, InputError, MissingError, StorageError, TransientError

# By name, to avoid importing the libraries; errors that are not subclasses of Python's OSErrors.
NAMES = frozenset({
    "TransportError", "TimeoutException", "ConnectError", "RemoteProtocolError",  # httpx
    "OperationalError", "InterfaceError",  # databases
    "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError", "IncompleteReadError",
    "ClientConnectionError", "ServerTimeoutError", "ServerDisconnectedError",  # object stores
})  # fmt: skip
BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})  # HTTP statuses after which a retry may succeed
STAYS = ("disk is full", "no space", "no permission", "read-only", "readonly", "not a database", "malformed")


def may_pass(error: BaseException) -> bool:
    """Whether a retry may succeed, because neither the user's input nor this machine caused the error.

    The causes of an error are checked too: a StorageError caused by a broken connection is transient, one that reports a full
    disk is not.
    """
    if isinstance(error, (Cancelled, InputError, MissingError)):
        return False
    if isinstance(error, StorageError) and any(words in str(error).lower() for words in STAYS):
        return False
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, (TransientError, ConnectionError, TimeoutError)):
            return True
        if any(kind.__name__ in NAMES for kind in type(cause).__mro__):
            return True
        if _status(cause) in BUSY:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _status(error: BaseException) -> int | None:
    """The HTTP status of the response in an error of httpx or botocore, if any."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        answer = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return answer if isinstance(answer, int) else None
    status = getattr(answer, "status_code", None)
    return status if isinstance(status, int) else None
