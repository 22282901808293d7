"""The account pages: sign-in, the user's account, administration, members of a project. Plain HTML without scripts.

They are separate from the studio's Gradio pages, so that nothing of the studio is loaded before the user has signed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse

from engine.core.actor import PROJECT_ROLES, ROLES
from engine.store import ProjectRow
from engine.store.audit import AuditRow
from engine.store.tokens import SCOPES, TokenRow
from studio.components.page_policy import plain_page
from studio.components.theme import STATIC, plain_style
from studio.i18n.translate import LANGUAGES, language, mark, moment, tr

if TYPE_CHECKING:
    from engine.store.accounts import AccountRow, MemberRow

PRIVATE = {"Cache-Control": "no-store"}
LABELS = {
    "viewer": mark("viewer"), "member": mark("member"), "admin": mark("admin"), "owner": mark("owner"),
    "read": mark("read"), "translate": mark("translate"), "write": mark("write"), "metrics": mark("metrics"),
}  # fmt: skip
ABOUT = {
    "viewer": mark("can view projects and translate in them"),
    "member": mark("can create projects and work in those they belong to"),
    "admin": mark("can see every project and manage accounts"),
}


def _page(
    template: str,
    title: str,
    *,
    narrow: bool = False,
    who: AccountRow | None = None,
    error: str = "",
    status: int = 0,
    query: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """A template in the frame of the account pages; with an error, the status defaults to 400.

    `query`: the address parameters to keep when the language is changed.
    """
    style = f"{plain_style()}\n{(STATIC / 'door.css').read_text(encoding='utf-8')}"
    return plain_page(
        template, style, status=status or (400 if error else 200), headers=PRIVATE, title=title, narrow=narrow, who=who,
        error=error, said=LABELS, about=ABOUT, moment=moment, scopes=_scopes, language=language(), languages=LANGUAGES.items(),
        query=query or {}, **values,
    )  # fmt: skip


def missing_page(title: str, text: str) -> HTMLResponse:
    """The page for an address that does not exist or no longer exists (404)."""
    return _page("missing.html", title, narrow=True, status=404, text=text)


def sign_in_page(next: str, *, name: str = "", error: str = "", accounts: bool = True, status: int = 200) -> HTMLResponse:
    """The sign-in form; without `accounts`, instructions for creating the first one."""
    return _page(
        "sign_in.html", tr("Sign in"), narrow=True, error=error, status=status, query={"next": next}, next=next, name=name,
        accounts=accounts,
    )  # fmt: skip


def first_page(code: str, *, error: str = "", name: str = "") -> HTMLResponse:
    """The form for the first account, an admin's; shown to the user who has the code from the studio's console."""
    title = tr("The first account")
    return _page("first_account.html", title, narrow=True, error=error, query={"code": code}, name=name, code=code)


def account_page(
    account: AccountRow, tokens: Sequence[TokenRow], projects: Sequence[ProjectRow], *, error: str = "", good: str = ""
) -> HTMLResponse:
    """The user's account: role, password, tokens."""
    return _page(
        "account.html", tr("Your account"), who=account, error=error, good=good, tokens=tokens,
        names={row.id: row.name for row in projects}, usual=SCOPES[:2],
        allowed=allowed_scopes(account.role),
    )  # fmt: skip


def allowed_scopes(role: str) -> Sequence[str]:
    """The scopes that a token of an account with that role may have."""
    return {"admin": SCOPES, "member": ("read", "translate", "write")}.get(role, ("read", "translate"))


def second_factor_page(account: AccountRow, secret: str, address: str) -> HTMLResponse:
    """The page with the key for an authenticator app and the field for its first code."""
    return _page("second_factor.html", tr("Second factor"), who=account, secret=secret, address=address)


def recovery_page(account: AccountRow, codes: Sequence[str]) -> HTMLResponse:
    """The only page that shows the recovery codes."""
    return _page("recovery_codes.html", tr("Recovery codes"), who=account, codes=codes)


def token_page(account: AccountRow, row: TokenRow, secret: str) -> HTMLResponse:
    """The only page that shows a token."""
    return _page("token.html", tr("New token"), who=account, row=row, secret=secret)


def admin_page(
    account: AccountRow,
    accounts: Sequence[AccountRow],
    log: Sequence[AuditRow],
    *,
    wanted: str = "",
    full: int = 100,
    error: str = "",
    good: str = "",
) -> HTMLResponse:
    """Accounts and the audit log, with `full` rows per page."""
    return _page(
        "admin.html", tr("Accounts"), who=account, error=error, good=good, accounts=accounts, log=log, wanted=wanted,
        full=full, roles=ROLES,
    )  # fmt: skip


def members_page(
    account: AccountRow, project: ProjectRow, members: Sequence[MemberRow], owner: bool, *, error: str = ""
) -> HTMLResponse:
    """The members of a project, which its owners can change."""
    return _page(
        "members.html", tr("Members"), who=account, error=error, project=project, members=members, owner=owner, roles=PROJECT_ROLES
    )


def _scopes(token: TokenRow) -> str:
    return ", ".join(tr(LABELS[scope]) for scope in token.scopes.split(",") if scope in LABELS)
