"""Two-factor sign-in: TOTP codes (RFC 6238) with SHA-1, six digits and 30 seconds, and recovery codes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from engine.core.json_object import Json
from engine.errors import InputError
from engine.store import tables
from engine.store.accounts import AppUser
from engine.store.tokens import digest

if TYPE_CHECKING:
    from engine.store.store import Store

STEP = 30  # seconds per code
DIGITS = 6
DRIFT = 1  # steps by which the two clocks may differ
RECOVERY_CODES = 10


def code_at(secret: str, step: int) -> str:
    """The code of a secret (base32) for a step of 30 seconds since 1970."""
    mac = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1)
    position = mac[-1] & 15
    number = struct.unpack(">I", mac[position : position + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def address_of(secret: str, name: str) -> str:
    """The `otpauth` URL for authenticator apps."""
    return f"otpauth://totp/Tailor%20MT:{quote(name, safe='')}?secret={secret}&issuer=Tailor%20MT"


class SecondFactors(tables.StorePart):
    """The second factors of accounts. Recovery codes are stored as hashes; all codes are valid only once."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        super().__init__(store)
        self._clock = clock

    def begin(self, user_id: int) -> str:
        """A new secret, effective once `confirm` has received a code of it; an existing one stays valid until then."""
        secret = base64.b32encode(secrets.token_bytes(20)).decode("ascii")
        with self._store.write() as session:
            record = session.get_one(AppUser, user_id)
            record.factor = {**(record.factor or {}), "offered": secret}
        return secret

    def confirm(self, user_id: int, code: str) -> list[str]:
        """Activate the offered secret and return new recovery codes. Raises InputError if the code does not match."""
        with self._store.write() as session:
            record = session.get_one(AppUser, user_id, with_for_update=True)
            offered = (record.factor or {}).get("offered")
            step = self._step(str(offered), code, -1) if offered else None
            if step is None:
                raise InputError("That is not the code your authenticator currently shows.")
            codes = [secrets.token_hex(5) for _ in range(RECOVERY_CODES)]
            record.factor = {"secret": offered, "step": step, "recovery": [digest(item) for item in codes]}
        return codes

    def remove(self, user_id: int) -> None:
        """Remove the second factor, so that signing in requires only the password."""
        with self._store.write() as session:
            session.get_one(AppUser, user_id).factor = None

    def passes(self, user_id: int, code: str) -> bool:
        """Whether the code is valid or none is required. A code is valid only once."""
        with self._store.write() as session:
            record = session.get_one(AppUser, user_id, with_for_update=True)
            factor: Json = record.factor or {}
            if "secret" not in factor:
                return True
            step = self._step(factor["secret"], code, factor["step"])
            if step is not None:
                record.factor = {**factor, "step": step}
                return True
            used = digest("".join(code.split()).lower())
            if used in factor["recovery"]:
                record.factor = {**factor, "recovery": [item for item in factor["recovery"] if item != used]}
                return True
            return False

    def _step(self, secret: str, code: str, last: int) -> int | None:
        """The step that the code belongs to, if later than the last step used, else None."""
        entered, now = "".join(code.split()).encode("utf-8", "surrogatepass"), int(self._clock()) // STEP
        for step in range(now - DRIFT, now + DRIFT + 1):
            if step > last and hmac.compare_digest(code_at(secret, step).encode(), entered):
                return step
        return None
