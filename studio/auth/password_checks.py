"""Password checks with rate limits per account name, per address and per pair of both, applied before the password is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.actor import THIS_MACHINE, Actor, act_as
from engine.errors import InputError
from engine.messages import mark
from engine.store.accounts import AccountRow, fold
from studio.auth.rate_limit import RateLimit

if TYPE_CHECKING:
    from engine.store import Store

FIVE_MINUTES = 300.0
TOO_MANY = mark("Too many wrong passwords. Try again in {count} seconds.")


class TooManyError(InputError):
    """Too many wrong passwords; `seconds` is the time to wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__(TOO_MANY, count=seconds)
        self.seconds = seconds


class PasswordChecks:
    """The limited password check; one instance per studio, so that sign-in and password changes are counted together."""

    def __init__(self, store: Store, attempts: int) -> None:
        self.store = store
        self.pair, self.address_alone, self.name_alone = (RateLimit(attempts * times, FIVE_MINUTES) for times in (1, 3, 10))

    def check(self, address: str, name: str, password: str, code: str = "", *, factor: bool = True) -> AccountRow | None:
        """The account with this name, password and, if `factor`, second factor; None if one is wrong. Raises TooManyError.

        An attempt is counted before it is checked, so that parallel attempts are limited like consecutive ones.
        """
        folded = fold(name)[:320]
        buckets = [(self.pair, f"{address} {folded}"), (self.address_alone, address), (self.name_alone, folded)]
        wait = max(limit.wait(key) for limit, key in buckets)
        if not wait:
            wait = max(limit.take(key) for limit, key in buckets)
        if wait:
            raise TooManyError(int(wait) + 1)
        with act_as(THIS_MACHINE):
            account = self.store.accounts.signed(name, password)
            if account is None or (factor and not self.store.second_factors.passes(account.id, code)):
                self._note(address, name)
                return None
        self.pair.forget(buckets[0][1])
        for limit, key in buckets[1:]:
            limit.give_back(key)
        return account

    def _note(self, address: str, name: str) -> None:
        try:  # only existing names are logged: an unknown one may be a password typed into the wrong field
            account_name = self.store.accounts.named(name).name
        except InputError:
            account_name = ""
        self.store.audit.note(Actor("nobody", address=address), "sign in refused", detail=account_name)
