"""Routes of the account pages: sign-in and sign-out, the user's account, administration and members of projects."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from engine.core.actor import THIS_MACHINE, Actor, Forbidden, act_as
from engine.core.numerals import LARGEST, whole_number
from engine.core.settings import Settings
from engine.errors import InputError, TailorError
from engine.store import Store
from engine.store.accounts import AccountRow
from engine.store.tokens import MOST_QUOTA, SCOPES
from studio.api.form_fields import refuse_repeated_fields
from studio.api.second_factor_routes import add_second_factor
from studio.auth.gateway import cookie_name, session_of
from studio.auth.identity import KEY, RequestIdentity, headers_of, is_loopback, sign_in_needed
from studio.auth.password_checks import PasswordChecks, TooManyError
from studio.components import account_pages as pages
from studio.i18n.translate import tr, translate_message
from studio.services.service import Service

Text = Annotated[str, Form(max_length=2000)]
SHOWN = 100  # entries on a page of the log


def add_door_routes(app: FastAPI, service: Service) -> None:
    """Add all account routes; none if users do not sign in."""
    app.state.first_code = ""
    if sign_in_needed(service.settings):
        refuse_repeated_fields(app.router)
        checks = PasswordChecks(service.store, service.settings.sign_in_attempts)
        door = SignIn(service, checks)
        app.state.first_code = door.first_code
        door.add_to(app)
        _add_account(app, service, checks)
        _add_admin(app, service)
        _add_members(app, service)


def check_door(settings: Settings) -> None:
    """Raises InputError if other machines could reach the studio and there is no account to sign in with."""
    if is_loopback(settings.host) or settings.sign_in == "off":
        return
    store = Store(settings.store_url)
    try:
        if store.accounts.count():
            return
    finally:
        store.close()
    raise InputError(
        f"The studio would listen on {settings.host}, where others can reach it, and nobody has an account. Make one with "
        "`tailormt user add NAME --role admin`, or say --no-sign-in where something before it asks for a password."
    )


def _guest(request: Request) -> RequestIdentity:
    return request.scope[KEY]


def _who(request: Request) -> AccountRow:
    """The signed-in account. Raises Forbidden without one, although the gateway admits no such request."""
    account = _guest(request).account
    if account is None:
        raise Forbidden("Sign in first.")
    return account


def _as_admin(request: Request) -> Actor:
    """The user as an admin, for actions on their own account that the store restricts to admins."""
    user = _who(request)
    return Actor(user.name, "admin", user.id, address=_guest(request).address)


def _nothing() -> Response:
    return PlainTextResponse(tr("There is nothing here."), 404)


class SignIn:
    """The pages for users who are not signed in, and signing out."""

    def __init__(self, service: Service, checks: PasswordChecks) -> None:
        self.service = service
        self.checks = checks
        # A local address is not enough to create the first account, an admin: a proxy on this machine may forward strangers.
        self.first_code = secrets.token_urlsafe(24) if self._no_account() else ""
        self._first = threading.Lock()

    def add_to(self, app: FastAPI) -> None:
        """Register the routes."""
        app.get("/sign-in", include_in_schema=False)(self.form)
        app.post("/sign-in", include_in_schema=False)(self.enter)
        app.post("/sign-out", include_in_schema=False)(self.leave)
        app.get("/first-account", include_in_schema=False)(self.first)
        app.post("/first-account", include_in_schema=False)(self.make_first)

    def form(self, request: Request, next: str = "/") -> Response:
        if _guest(request).account is not None:
            return RedirectResponse(_inside(next), 303)
        if self._no_account():
            return pages.sign_in_page("/", accounts=False)
        return pages.sign_in_page(_inside(next))

    def enter(
        self, request: Request, name: Text, password: Annotated[str, Form(max_length=1024)], code: Text = "", next: Text = "/"
    ) -> Response:
        position, preview = _inside(next), name[:80]
        try:
            account = self.checks.check(_guest(request).address, name, password, code)
        except TooManyError as error:
            response = pages.sign_in_page(position, name=preview, error=translate_message(error.message), status=429)
            response.headers["Retry-After"] = str(error.seconds)
            return response
        if account is None:
            return pages.sign_in_page(position, name=preview, error=tr("Name, password or code is wrong."), status=401)
        return self._begin_session(request, account, position)

    def leave(self, request: Request) -> Response:
        secret = session_of(request.scope, headers_of(request.scope))
        with act_as(THIS_MACHINE):
            self.service.store.sign_ins.close(secret)
            self.service.store.audit.note(Actor(_who(request).name, address=_guest(request).address), "sign out")
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(**_cookie(request))
        return response

    def first(self, code: str = "") -> Response:
        return pages.first_page(code) if self._may_make_first(code) else _nothing()

    def make_first(self, request: Request, name: Text, password: Text, code: Text = "") -> Response:
        with self._first:  # so that concurrent requests with the code create only one account
            if not self._may_make_first(code):
                return _nothing()
            try:
                with act_as(THIS_MACHINE):
                    account = self.service.store.accounts.create(name, password, "admin")
            except InputError as error:
                return pages.first_page(code, error=translate_message(error.message), name=name[:80])
            self.first_code = ""
        return self._begin_session(request, account, "/")

    def _begin_session(self, request: Request, account: AccountRow, location: str) -> Response:
        """Start a session with a new secret, whatever cookie the browser sent."""
        seconds = self.service.settings.session_hours * 3600
        address = _guest(request).address
        with act_as(THIS_MACHINE):
            secret = self.service.store.sign_ins.open(account.id, seconds, address)
            self.service.store.audit.note(Actor(account.name, address=address), "sign in")
        response = RedirectResponse(location, 303)
        response.set_cookie(value=secret, max_age=seconds, **_cookie(request))
        return response

    def _no_account(self) -> bool:
        with act_as(THIS_MACHINE):
            return self.service.store.accounts.count() == 0

    def _may_make_first(self, code: str) -> bool:
        expected = self.first_code
        same = secrets.compare_digest(code.encode("utf-8", "replace"), expected.encode())
        return bool(expected) and same and self._no_account()


class Cookie(TypedDict):
    """The parameters for setting and deleting the session's cookie."""

    key: str
    path: str
    httponly: bool
    samesite: Literal["lax"]
    secure: bool


def _cookie(request: Request) -> Cookie:
    scheme = request.url.scheme
    return Cookie(key=cookie_name(scheme), path="/", httponly=True, samesite="lax", secure=scheme == "https")


def _add_account(app: FastAPI, service: Service, checks: PasswordChecks) -> None:
    def render_page(request: Request, **values: str) -> Response:
        user = _who(request)
        tokens = service.store.tokens.list(user_id=user.id)
        return pages.account_page(user, tokens, service.store.projects.list(), **values)

    @app.get("/account", include_in_schema=False)
    def account(request: Request) -> Response:
        return render_page(request)

    @app.post("/account/password", include_in_schema=False)
    def password(request: Request, now: Text, new: Text, revoke: Text = "") -> Response:
        user = _who(request)
        try:
            if checks.check(_guest(request).address, user.name, now, factor=False) is None:
                raise InputError("The current password is wrong.")
            with act_as(_as_admin(request)):
                service.store.accounts.set_password(user.id, new, keep=_guest(request).session)
                for token in service.store.tokens.list(user_id=user.id) if revoke == "yes" else []:
                    service.store.tokens.revoke(token.id)
        except InputError as error:
            return render_page(request, error=translate_message(error.message))
        return render_page(request, good=tr("Your password has been changed."))

    add_second_factor(app, service, checks, _who, render_page)

    @app.post("/account/tokens", include_in_schema=False)
    def make(
        request: Request,
        name: Text,
        scope: Annotated[list[str] | None, Form()] = None,
        project: Text = "",
        days: Text = "",
        quota: Text = "",
    ) -> Response:
        user = _who(request)
        try:
            scopes = scope or []
            if {*SCOPES} & {*scopes} - {*pages.allowed_scopes(user.role)}:
                raise InputError("A token may do no more than its account.")
            number, until = whole_number(project), whole_number(days, 1, 3650)
            characters = whole_number(quota, 1, MOST_QUOTA)
            if (project.strip() and number is None) or (days.strip() and until is None):
                raise InputError("Choose a project from the list, and enter 1 to 3650 days or leave the field empty.")
            if quota.strip() and characters is None:
                raise InputError("Enter a whole number of characters per month, at least 1, or leave the field empty.")
            row, secret = service.store.tokens.create(
                name, scopes, user_id=user.id, project_id=number, days=until, quota=characters
            )
        except TailorError as error:
            return render_page(request, error=translate_message(error.message))
        return pages.token_page(user, row, secret)

    @app.post("/account/tokens/{number}/revoke", include_in_schema=False)
    def revoke(request: Request, number: int) -> Response:
        try:
            if service.store.tokens.get(number).user_id != _who(request).id:
                return _nothing()
            service.store.tokens.revoke(number)
        except InputError:
            return _nothing()
        return RedirectResponse("/account", 303)


def _add_admin(app: FastAPI, service: Service) -> None:
    def render_page(request: Request, action: str = "", before: int | None = None, **values: str) -> Response:
        user = _who(request)
        store = service.store
        log = store.audit.list(action=action, before=before, limit=SHOWN)
        return pages.admin_page(user, store.accounts.list(), log, wanted=action, full=SHOWN, **values)

    def act(request: Request, run: Callable[[], Any]) -> Response:
        if _who(request).role != "admin":
            return _nothing()
        try:
            run()
        except TailorError as error:
            return render_page(request, error=translate_message(error.message))
        return RedirectResponse("/admin", 303)

    @app.get("/admin", include_in_schema=False)
    def admin(request: Request, action: str = "", before: Annotated[int | None, Query(ge=0, le=LARGEST)] = None) -> Response:
        if _who(request).role != "admin":
            return _nothing()
        return render_page(request, action[:64], before)

    @app.post("/admin/accounts", include_in_schema=False)
    def add(request: Request, name: Text, password: Text, role: Text = "member") -> Response:
        return act(request, lambda: service.store.accounts.create(name, password, role))

    @app.post("/admin/accounts/{number}/role", include_in_schema=False)
    def role_of(request: Request, number: int, role: Text) -> Response:
        return act(request, lambda: service.store.accounts.change(number, role=role))

    @app.post("/admin/accounts/{number}/password", include_in_schema=False)
    def password_of(request: Request, number: int, password: Text) -> Response:
        return act(request, lambda: service.store.accounts.set_password(number, password))

    @app.post("/admin/accounts/{number}/active", include_in_schema=False)
    def active(request: Request, number: int, active: Text) -> Response:
        return act(request, lambda: service.store.accounts.change(number, active=active == "yes"))

    @app.post("/admin/accounts/{number}/delete", include_in_schema=False)
    def delete(request: Request, number: int) -> Response:
        return act(request, lambda: service.store.accounts.delete(number))


def _add_members(app: FastAPI, service: Service) -> None:
    def render_page(request: Request, number: int, error: str = "") -> Response:
        try:
            project, role = service.store.projects.get(number), service.role(number)
        except InputError:
            return _nothing()
        with act_as(THIS_MACHINE):  # reads names of other accounts; access to the project is checked above
            members = service.store.members.list(number)
        return pages.members_page(_who(request), project, members, role == "owner", error=error)

    def act(request: Request, number: int, run: Callable[[], Any]) -> Response:
        role = service.role(number) if number < 2**31 else ""
        if not role:
            return _nothing()
        if role != "owner":
            return PlainTextResponse(tr("Only owners of a project change its members."), 403)
        try:
            run()
        except TailorError as error:
            return render_page(request, number, translate_message(error.message))
        return RedirectResponse(f"/members/{number}", 303)

    @app.get("/members/{number}", include_in_schema=False)
    def members(request: Request, number: int) -> Response:
        return render_page(request, number)

    @app.post("/members/{number}/add", include_in_schema=False)
    def add(request: Request, number: int, name: Text, role: Text = "member") -> Response:
        def run() -> None:
            with act_as(THIS_MACHINE):
                user = service.store.accounts.named(name).id
            service.store.members.set(number, user, role)

        return act(request, number, run)

    @app.post("/members/{number}/role", include_in_schema=False)
    def role_of(request: Request, number: int, user: Annotated[int, Form()], role: Text) -> Response:
        return act(request, number, lambda: service.store.members.set(number, user, role))

    @app.post("/members/{number}/remove", include_in_schema=False)
    def remove(request: Request, number: int, user: Annotated[int, Form()]) -> Response:
        return act(request, number, lambda: service.store.members.remove(number, user))


def _inside(path: str) -> str:
    """The path if it is within this studio, else the start page, so that a link cannot redirect to another site."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if inside and len(path) < 1000 else "/"
