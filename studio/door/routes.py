"""What the pages of the door do: sign in and out, the own account, accounts and members. Each act is for whoever signed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Form, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from engine.access import THIS_MACHINE, Access, Forbidden, acting_as
from engine.errors import InputError, TailorError
from studio.door import pages
from studio.door.gate import cookie_name, session_of
from studio.door.rates import Rates
from studio.door.who import KEY, Guest, from_here, headers_of, is_loopback, sign_in_needed
from studio.i18n import tr
from studio.told import told

if TYPE_CHECKING:
    from engine.settings import Settings
    from engine.store.accounts import AccountRow
    from studio.service import Service

__all__ = ["add_door_routes", "check_door"]

Text = Annotated[str, Form(max_length=2000)]
FIVE_MINUTES = 300.0
SHOWN = 100  # acts on a page of the log


def add_door_routes(app: FastAPI, service: Service) -> None:
    """All of them; where nobody signs in, there are none."""
    settings = service.settings
    if sign_in_needed(settings):
        _add_sign_in(app, service)
        _add_account(app, service)
        _add_admin(app, service)
        _add_members(app, service)


def check_door(settings: Settings) -> None:
    """Raises InputError where others could reach a studio that nobody can sign in to, or that asks nobody to."""
    from engine.store import Store

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


def _guest(request: Request) -> Guest:
    found: Guest = request.scope[KEY]
    return found


def _who(request: Request) -> AccountRow:
    """Whoever signed in; the gate lets nobody else get here."""
    account = _guest(request).account
    if account is None:
        raise Forbidden("Sign in first.")
    return account


def _as_admin(request: Request) -> Access:
    """For acts that the store allows an admin alone and somebody may do on what is their own."""
    who = _who(request)
    return Access(who.name, "admin", who.id, address=_guest(request).address)


def _nothing() -> Response:
    return PlainTextResponse(tr("There is nothing here."), 404)


def _add_sign_in(app: FastAPI, service: Service) -> None:
    settings = service.settings
    count = settings.sign_in_attempts
    pair, address_alone, name_alone = (Rates(count * times, FIVE_MINUTES) for times in (1, 3, 10))

    def buckets(address: str, name: str) -> list[tuple[Rates, str]]:
        folded = " ".join(name.split()).casefold()[:320]
        return [(pair, f"{address} {folded}"), (address_alone, address), (name_alone, folded)]

    def opened(request: Request, account: AccountRow, place: str) -> Response:
        """A session begins: a new secret, whatever cookie the browser showed."""
        seconds = settings.session_hours * 3600
        with acting_as(THIS_MACHINE):
            secret = service.store.sign_ins.open(account.id, seconds, _guest(request).address)
            service.store.audit.note(Access(account.name, address=_guest(request).address), "sign in")
        response = RedirectResponse(place, 303)
        scheme = request.url.scheme
        response.set_cookie(
            cookie_name(scheme),
            secret,
            max_age=seconds,
            path="/",
            httponly=True,
            samesite="lax",
            secure=scheme == "https",
        )
        return response

    def none_yet() -> bool:
        with acting_as(THIS_MACHINE):
            return service.store.accounts.count() == 0

    @app.get("/sign-in", include_in_schema=False)
    def sign_in(request: Request, next: str = "/") -> Response:
        if _guest(request).account is not None:
            return RedirectResponse(_inside(next), 303)
        if none_yet():
            if from_here(request.scope, headers_of(request.scope)):
                return RedirectResponse("/first-account", 303)
            return pages.sign_in_page("/", accounts=False)
        return pages.sign_in_page(_inside(next))

    @app.post("/sign-in", include_in_schema=False)
    def sign_in_done(
        request: Request, name: Text, password: Annotated[str, Form(max_length=1024)], next: Text = "/"
    ) -> Response:
        address = _guest(request).address
        wait = max(one.wait(key) for one, key in buckets(address, name))
        if wait:
            words = tr("Too many wrong passwords. Try again in {count} seconds.", count=int(wait) + 1)
            found = pages.sign_in_page(_inside(next), name=name[:80], error=words, status=429)
            found.headers["Retry-After"] = str(int(wait) + 1)
            return found
        with acting_as(THIS_MACHINE):
            account = service.store.accounts.signed(name, password)
            if account is not None:
                pair.forget(f"{address} {' '.join(name.split()).casefold()[:320]}")
                return opened(request, account, _inside(next))
            for one, key in buckets(address, name):
                one.take(key)
            try:  # only names that there are: what somebody types into the wrong field may be a password
                known = service.store.accounts.named(name).name
            except InputError:
                known = ""
            service.store.audit.note(Access("nobody", address=address), "sign in refused", detail=known)
        words = tr("Name or password is wrong.")
        return pages.sign_in_page(_inside(next), name=name[:80], error=words, status=401)

    @app.post("/sign-out", include_in_schema=False)
    def sign_out(request: Request) -> Response:
        secret = session_of(request.scope, headers_of(request.scope))
        with acting_as(THIS_MACHINE):
            service.store.sign_ins.close(secret)
            service.store.audit.note(Access(_who(request).name, address=_guest(request).address), "sign out")
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(cookie_name(request.url.scheme), path="/", httponly=True, samesite="lax",
                               secure=request.url.scheme == "https")  # fmt: skip
        return response

    @app.get("/first-account", include_in_schema=False)
    def first(request: Request) -> Response:
        if not none_yet() or not from_here(request.scope, headers_of(request.scope)):
            return _nothing()
        return pages.first_page()

    @app.post("/first-account", include_in_schema=False)
    def first_done(request: Request, name: Text, password: Text) -> Response:
        if not none_yet() or not from_here(request.scope, headers_of(request.scope)):
            return _nothing()
        try:
            with acting_as(THIS_MACHINE):
                account = service.store.accounts.create(name, password, "admin")
        except InputError as error:
            return pages.first_page(error=told(str(error)), name=name[:80])
        return opened(request, account, "/")


def _add_account(app: FastAPI, service: Service) -> None:
    def shown(request: Request, **said: str) -> Response:
        who = _who(request)
        tokens = service.store.tokens.list(user_id=who.id)
        return pages.account_page(who, tokens, service.store.projects.list(), **said)

    @app.get("/account", include_in_schema=False)
    def account(request: Request) -> Response:
        return shown(request)

    @app.post("/account/password", include_in_schema=False)
    def password(request: Request, now: Text, new: Text) -> Response:
        who = _who(request)
        try:
            with acting_as(_as_admin(request)):
                if service.store.accounts.signed(who.name, now) is None:
                    raise InputError("That is not your password now.")
                service.store.accounts.set_password(who.id, new, keep=_guest(request).session)
        except InputError as error:
            return shown(request, error=told(str(error)))
        return shown(request, good=tr("The password is changed."))

    @app.post("/account/tokens", include_in_schema=False)
    def make(
        request: Request,
        name: Text,
        scope: Annotated[list[str] | None, Form()] = None,
        project: Text = "",
        days: Text = "",
    ) -> Response:
        who = _who(request)
        try:
            wanted = scope or []
            beyond = {"admin": (), "member": ("admin", "metrics")}.get(who.role, ("admin", "metrics", "write"))
            if any(one in beyond for one in wanted):
                raise InputError("A token may do no more than its account.")
            number = int(project) if project.isdigit() else None
            until = int(days) if days.isdigit() and 0 < int(days) <= 3650 else None
            row, secret = service.store.tokens.create(name, wanted, user_id=who.id, project_id=number, days=until)
        except TailorError as error:
            return shown(request, error=told(str(error)))
        return pages.token_page(who, row, secret)

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
    def shown(request: Request, action: str = "", before: int | None = None, **said: str) -> Response:
        who = _who(request)
        store = service.store
        log = store.audit.list(action=action, before=before, limit=SHOWN)
        return pages.admin_page(who, store.accounts.list(), log, wanted=action, full=SHOWN, **said)

    def act(request: Request, run: Callable[[], Any]) -> Response:
        if _who(request).role != "admin":
            return _nothing()
        try:
            run()
        except TailorError as error:
            return shown(request, error=told(str(error)))
        return RedirectResponse("/admin", 303)

    @app.get("/admin", include_in_schema=False)
    def admin(request: Request, action: str = "", before: int | None = None) -> Response:
        if _who(request).role != "admin":
            return _nothing()
        return shown(request, action[:64], before)

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
    def shown(request: Request, number: int, error: str = "") -> Response:
        try:
            project, role = service.store.projects.get(number), service.role(number)
        except InputError:
            return _nothing()
        with acting_as(THIS_MACHINE):  # names of other accounts; the project is theirs to see, as was just found
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
            return shown(request, number, told(str(error)))
        return RedirectResponse(f"/members/{number}", 303)

    @app.get("/members/{number}", include_in_schema=False)
    def members(request: Request, number: int) -> Response:
        return shown(request, number)

    @app.post("/members/{number}/add", include_in_schema=False)
    def add(request: Request, number: int, name: Text, role: Text = "member") -> Response:
        def run() -> None:
            with acting_as(THIS_MACHINE):
                user = service.store.accounts.named(name).id
            service.store.members.set(number, user, role)

        return act(request, number, run)

    @app.post("/members/{number}/role", include_in_schema=False)
    def role_of(request: Request, number: int, user: Annotated[int, Form()], role: Text) -> Response:
        return act(request, number, lambda: service.store.members.set(number, user, role))

    @app.post("/members/{number}/remove", include_in_schema=False)
    def remove(request: Request, number: int, user: Annotated[int, Form()]) -> Response:
        return act(request, number, lambda: service.store.members.remove(number, user))


def _inside(place: str) -> str:
    """A path of this studio; the first page for anything else, so that a link leads nobody elsewhere."""
    inside = place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable() and "\\" not in place
    return place if inside and len(place) < 1000 else "/"
