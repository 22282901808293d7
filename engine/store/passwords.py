"""Passwords as argon2id hashes (RFC 9106). The parameters are above those that OWASP's password storage sheet asks for."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

# Many who sign in at once are to wait, not to fill the memory.
_AT_ONCE = threading.BoundedSemaphore(4)


@cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=3, memory_cost=32 << 10, parallelism=1)  # 32 MiB, 3 passes


@cache
def _nobody() -> str:
    """The hash that a password is compared with where there is no account, so that this takes as long."""
    return hashed("nobody has this password")


def hashed(password: str) -> str:
    """The hash of a password with a salt of its own, in the usual text form."""
    with _AT_ONCE:
        return str(_hasher().hash(password.encode("utf-8", "surrogatepass")))


def matches(stored_hash: str, password: str) -> bool:
    """Is it the password of this hash? An empty hash takes as long and matches nothing."""
    from argon2.exceptions import InvalidHashError, VerificationError

    compared = stored_hash or _nobody()
    try:
        with _AT_ONCE:
            result = bool(_hasher().verify(compared, password.encode("utf-8", "surrogatepass")))
    except (VerificationError, InvalidHashError):
        return False
    return result and bool(stored_hash)


def worn(stored_hash: str) -> bool:
    """Was the hash made with other parameters than those of today?"""
    return bool(_hasher().check_needs_rehash(stored_hash))
