"""Routes for the second factor of the user's account: set-up, confirmation by a code, and removal with the password."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Form, Request, Response

from engine.core.actor import THIS_MACHINE, Actor, act_as
from engine.errors import InputError
from engine.store.accounts import AccountRow
from engine.store.second_factor import address_of
from studio.auth.identity import KEY
from studio.auth.password_checks import PasswordChecks
from studio.components import account_pages as pages
from studio.i18n.translate import tr, translate_message
from studio.services.service import Service

Text = Annotated[str, Form(max_length=2000)]


def add_second_factor(
    app: FastAPI,
    service: Service,
    checks: PasswordChecks,
    account_of: Callable[[Request], AccountRow],
    account_page: Callable[..., Response],
) -> None:
    """Add the routes; `account_of` returns the signed-in account, `account_page` its page with the message `error` or `good`."""
    factors = service.store.second_factors

    def with_password(request: Request, password: str, act: Callable[[AccountRow], Response]) -> Response:
        """The response of `act` if the password is right; otherwise the account page with the error."""
        try:
            account = account_of(request)
            if checks.check(request.scope[KEY].address, account.name, password, factor=False) is None:
                raise InputError("The current password is wrong.")
        except InputError as error:
            return account_page(request, error=translate_message(error.message))
        return act(account)

    def note(request: Request, account: AccountRow, action: str) -> None:
        service.store.audit.note(Actor(account.name, address=request.scope[KEY].address), action)

    @app.post("/account/second-factor", include_in_schema=False)
    def begin(request: Request, now: Text) -> Response:
        def offered(account: AccountRow) -> Response:
            with act_as(THIS_MACHINE):
                secret = factors.begin(account.id)
            return pages.second_factor_page(account, secret, address_of(secret, account.name))

        return with_password(request, now, offered)

    @app.post("/account/second-factor/confirm", include_in_schema=False)
    def confirm(request: Request, code: Text) -> Response:
        account = account_of(request)
        try:
            with act_as(THIS_MACHINE):
                codes = factors.confirm(account.id, code)
                note(request, account, "second factor set")
        except InputError as error:
            return account_page(request, error=translate_message(error.message))
        return pages.recovery_page(account, codes)

    @app.post("/account/second-factor/remove", include_in_schema=False)
    def remove(request: Request, now: Text) -> Response:
        def removed(account: AccountRow) -> Response:
            with act_as(THIS_MACHINE):
                factors.remove(account.id)
                note(request, account, "second factor removed")
            return account_page(request, good=tr("The second factor is removed."))

        return with_password(request, now, removed)
