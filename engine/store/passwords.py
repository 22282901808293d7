"""Passwords as argon2id hashes (RFC 9106). The parameters exceed those of the OWASP password storage cheat sheet."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

# Many simultaneous sign-ins wait instead of exhausting the memory.
_AT_ONCE = threading.BoundedSemaphore(4)


@cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=3, memory_cost=32 << 10, parallelism=1)  # 32 MiB, 3 passes


@cache
def _nobody() -> str:
    """The hash to verify against if there is no account, so that verification takes as long."""
    return hashed("nobody has this password")


def hashed(password: str) -> str:
    """Hash a password with a new salt, in the standard text form."""
    with _AT_ONCE:
        return str(_hasher().hash(password.encode("utf-8", "surrogatepass")))


def matches(stored_hash: str, password: str) -> bool:
    """Whether the password matches the hash. An empty hash takes as long and never matches."""
    from argon2.exceptions import InvalidHashError, VerificationError

    compared = stored_hash or _nobody()
    try:
        with _AT_ONCE:
            result = bool(_hasher().verify(compared, password.encode("utf-8", "surrogatepass")))
    except (VerificationError, InvalidHashError):
        return False
    return result and bool(stored_hash)


def worn(stored_hash: str) -> bool:
    """Whether the parameters of the hash differ from the current ones."""
    return bool(_hasher().check_needs_rehash(stored_hash))
