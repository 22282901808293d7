"""The pages of the door: sign in, the own account, the admin's, the members of a project. Plain HTML without a script.

They are pages of their own beside the studio's, so that nothing of it is loaded for somebody who has not signed in.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fastapi.responses import HTMLResponse

from engine.access import PROJECT_ROLES, ROLES
from engine.store.tokens import SCOPES
from studio.html import esc
from studio.i18n import LANGUAGES, language, mark, moment, tr
from studio.theme import ROLES as COLOURS
from studio.theme import STATIC

if TYPE_CHECKING:
    from engine.store import ProjectRow
    from engine.store.accounts import AccountRow, MemberRow
    from engine.store.audit import AuditRow
    from engine.store.tokens import TokenRow

__all__ = ["account_page", "admin_page", "answer", "first_page", "members_page", "sign_in_page", "token_page"]

PRIVATE = {"Cache-Control": "no-store"}
SAID = {
    "viewer": mark("viewer"), "member": mark("member"), "admin": mark("admin"), "owner": mark("owner"),
    "read": mark("read"), "translate": mark("translate"), "write": mark("write"), "metrics": mark("metrics"),
}  # fmt: skip
ABOUT = {
    "viewer": mark("looks at projects and translates in them"),
    "member": mark("makes projects and works in those they belong to"),
    "admin": mark("sees every project, and looks after accounts"),
}


def answer(
    body: str, title: str, *, narrow: bool = False, who: AccountRow | None = None, status: int = 200
) -> HTMLResponse:
    """A page in the studio's colours, light or dark as the reader's machine is."""
    light = "".join(f"--tm-{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--tm-{name}:{pair[1]};" for name, pair in COLOURS.items())
    roles = f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}"
    style = (STATIC / "door.css").read_text(encoding="utf-8")
    now = language()
    tongues = "".join(
        f'<a href="?lang={code}" lang="{code}"{" aria-current=true" if code == now else ""}>{name}</a>'
        for code, name in LANGUAGES.items()
    )
    links = ""
    if who is not None:
        admin = f'<a href="/admin">{esc(tr("Accounts"))}</a>' if who.role == "admin" else ""
        links = (
            f'<a href="/">{esc(tr("Projects"))}</a><a href="/account">{esc(tr("Your account"))}</a>{admin}{_sign_out()}'
        )
    return HTMLResponse(
        f'<!doctype html><html lang="{now}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{esc(title)} · Tailor MT</title><style>{roles}\n{style}</style></head>"
        f'<body><main class="{"narrow" if narrow else ""}"><header><a class="brand" href="/">Tailor<span>·</span>MT</a>'
        f'<nav aria-label="{esc(tr("Account"))}">{links}</nav>'
        f'<div class="tongues" role="group" aria-label="{esc(tr("Language"))}">{tongues}</div></header>'
        f"<h1>{esc(title)}</h1>{body}</main></body></html>",
        status,
        PRIVATE,
    )


def _sign_out() -> str:
    return f'<form method="post" action="/sign-out"><button class="link">{esc(tr("Sign out"))}</button></form>'


def _note(text: str, good: bool = False) -> str:
    return f'<p class="note{" good" if good else ""}" role="alert">{esc(text)}</p>' if text else ""


def _field(label: str, name: str, kind: str = "text", value: str = "", more: str = "") -> str:
    return f'<label>{esc(label)}<input type="{kind}" name="{name}" value="{esc(value)}" {more}></label>'


def _choice(name: str, label: str, words: Iterable[str], chosen: str) -> str:
    options = "".join(
        f'<option value="{word}"{" selected" if word == chosen else ""}>{esc(tr(SAID[word]))}</option>'
        for word in words
    )
    return f'<select name="{name}" aria-label="{esc(label)}">{options}</select>'


NEW = 'autocomplete="new-password" required minlength="10" maxlength="1024"'


def sign_in_page(
    next: str, *, name: str = "", error: str = "", accounts: bool = True, status: int = 200
) -> HTMLResponse:
    """Name and password."""
    form = (
        f'<form method="post" action="/sign-in" class="card">{_note(error)}'
        f'<input type="hidden" name="next" value="{esc(next)}">'
        f"{_field(tr('Name'), 'name', value=name, more='autocomplete=username required autofocus maxlength=320')}"
        f"{_field(tr('Password'), 'password', 'password', more='autocomplete=current-password required maxlength=1024')}"
        f'<button class="filled">{esc(tr("Sign in"))}</button></form>'
    )
    if not accounts:
        words = tr("There is no account yet. On the machine that the studio runs on, make the first:")
        form = f'<div class="card"><p>{esc(words)}</p><pre>tailormt user add NAME --role admin</pre></div>'
    return answer(form, tr("Sign in"), narrow=True, status=status)


def first_page(*, error: str = "", name: str = "") -> HTMLResponse:
    """The first account, which is an admin's; shown on the studio's own machine alone."""
    words = tr("This studio asks people to sign in, and nobody can yet. The first account is an admin's.")
    form = (
        f'<form method="post" action="/first-account" class="card">{_note(error)}<p>{esc(words)}</p>'
        f"{_field(tr('Name'), 'name', value=name, more='autocomplete=username required autofocus maxlength=80')}"
        f"{_field(tr('Password'), 'password', 'password', more=NEW)}"
        f'<button class="filled">{esc(tr("Make the account"))}</button></form>'
    )
    return answer(form, tr("The first account"), narrow=True, status=400 if error else 200)


def account_page(
    who: AccountRow, tokens: Sequence[TokenRow], projects: Sequence[ProjectRow], *, error: str = "", good: str = ""
) -> HTMLResponse:
    """Role, password, tokens."""
    names = {row.id: row.name for row in projects}
    password = (
        '<form method="post" action="/account/password" class="card">'
        f'<h2>{esc(tr("Password"))}</h2><input type="hidden" autocomplete="username" value="{esc(who.name)}">'
        f"{_field(tr('Password now'), 'now', 'password', more='autocomplete=current-password required maxlength=1024')}"
        f"{_field(tr('New password'), 'new', 'password', more=NEW)}"
        f'<p class="quiet">{esc(tr("Sessions in other browsers end."))}</p><button>{esc(tr("Change it"))}</button></form>'
    )
    allowed = {"admin": SCOPES, "member": ("read", "translate", "write")}.get(who.role, ("read", "translate"))
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="scope" value="{one}"{" checked" if one in SCOPES[:2] else ""}>'
        f"{esc(tr(SAID[one]))}</label>"
        for one in allowed
    )
    options = f'<option value="">{esc(tr("all that you see"))}</option>' + "".join(
        f'<option value="{row.id}">{esc(row.name)}</option>' for row in projects
    )
    rows = "".join(
        f"<tr><td>{esc(row.name)}<br><code>{esc(row.shown)}…</code></td><td>{esc(_scopes(row.scopes))}</td>"
        f"<td>{esc(names.get(row.project_id, row.project_id) if row.project_id else tr('all that you see'))}</td>"
        f"<td>{esc(_when(row.used, tr('never')))}</td><td>{esc(_when(row.expires, tr('never')))}</td>"
        f'<td><form method="post" action="/account/tokens/{row.id}/revoke"><button class="link danger">{esc(tr("Revoke"))}'
        "</button></form></td></tr>"
        for row in tokens
    )
    heads = [tr("token"), tr("for"), tr("projects"), tr("used"), tr("runs out"), ""]
    table = _table(heads, rows) if tokens else f'<p class="quiet">{esc(tr("You have no tokens."))}</p>'
    make = (
        f'<form method="post" action="/account/tokens" class="row">'
        f"{_field(tr('For which program'), 'name', more='required maxlength=80')}"
        f"<fieldset><legend>{esc(tr('It may'))}</legend>{ticks}</fieldset>"
        f'<label>{esc(tr("Projects"))}<select name="project">{options}</select></label>'
        f"{_field(tr('Days'), 'days', 'number', '90', 'min=1 max=3650')}<button>{esc(tr('Make a token'))}</button></form>"
    )
    about = f"{tr(SAID[who.role])}: {tr(ABOUT[who.role])}"
    body = (
        f'{_note(error)}{_note(good, True)}<p class="quiet"><b>{esc(who.name)}</b> · {esc(about)}</p>'
        f'<section class="card wide"><h2>{esc(tr("Tokens for programs"))}</h2>{table}{make}</section>{password}'
    )
    return answer(body, tr("Your account"), who=who, status=400 if error else 200)


def token_page(who: AccountRow, row: TokenRow, secret: str) -> HTMLResponse:
    """The only page that shows a token."""
    body = (
        f'<div class="card"><p>{esc(tr("This is the token. It is not shown again."))}</p><pre>{esc(secret)}</pre>'
        f'<p class="quiet">{esc(row.name)} · {esc(_scopes(row.scopes))}</p><a href="/account">{esc(tr("Done"))}</a></div>'
    )
    return answer(body, tr("A new token"), who=who)


def admin_page(
    who: AccountRow,
    accounts: Sequence[AccountRow],
    log: Sequence[AuditRow],
    *,
    wanted: str = "",
    full: int = 100,
    error: str = "",
    good: str = "",
) -> HTMLResponse:
    """Accounts, and the audit log; `full` rows of it are a page."""
    rows = "".join(_account(row) for row in accounts)
    heads = [tr("name"), tr("role"), tr("last signed in"), tr("new password"), ""]
    new = (
        '<form method="post" action="/admin/accounts" class="row">'
        f"{_field(tr('Name'), 'name', more='required maxlength=80 autocomplete=off')}"
        f"{_field(tr('Password'), 'password', 'password', more=NEW)}"
        f"<label>{esc(tr('Role'))}{_choice('role', tr('Role'), ROLES, 'member')}</label>"
        f"<button>{esc(tr('Add the account'))}</button></form>"
    )
    about = "".join(f"<li><b>{esc(tr(SAID[one]))}</b>: {esc(tr(ABOUT[one]))}</li>" for one in ROLES)
    acts = "".join(
        f"<tr><td class=quiet>{esc(moment(row.moment))}</td><td>{esc(row.who)}<br><small>{esc(row.address)}</small></td>"
        f"<td>{esc(row.action)}</td><td>{row.project_id or ''}</td><td>{esc(row.target)}</td><td>{esc(row.detail)}</td></tr>"
        for row in log
    )
    older = (
        f'<a href="/admin?before={log[-1].id}&amp;action={esc(wanted)}#log">{esc(tr("Older"))}</a>'
        if len(log) >= full
        else ""
    )
    sought = (
        f'<form method="get" action="/admin#log" class="row">{_field(tr("Acts that begin with"), "action", value=wanted)}'
        f"<button>{esc(tr('Show'))}</button></form>"
    )
    heads_log = [tr("when"), tr("who"), tr("what"), tr("project"), tr("number"), tr("which")]
    body = (
        f"{_note(error)}{_note(good, True)}"
        f'<section class="card wide">{_table(heads, rows)}{new}<ul class="quiet">{about}</ul></section>'
        f'<section class="card wide" id="log"><h2>{esc(tr("Who did what"))}</h2>{sought}{_table(heads_log, acts)}{older}</section>'
    )
    return answer(body, tr("Accounts"), who=who, status=400 if error else 200)


def _account(row: AccountRow) -> str:
    act = f"/admin/accounts/{row.id}"
    role = (
        f'<form method="post" action="{act}/role">{_choice("role", tr("Role of {name}", name=row.name), ROLES, row.role)}'
        f"<button>{esc(tr('Set'))}</button></form>"
    )
    label = esc(tr("New password of {name}", name=row.name))
    password = (
        f'<form method="post" action="{act}/password"><input type="password" name="password" aria-label="{label}" {NEW}>'
        f"<button>{esc(tr('Set'))}</button></form>"
    )
    word, value = (tr("Close"), "no") if row.active else (tr("Open again"), "yes")
    close = (
        f'<form method="post" action="{act}/active"><input type="hidden" name="active" value="{value}">'
        f'<button class="link" aria-label="{esc(word)} {esc(row.name)}">{esc(word)}</button></form>'
        f'<form method="post" action="{act}/delete"><button class="link danger" aria-label="{esc(tr("Delete"))} {esc(row.name)}">'
        f"{esc(tr('Delete'))}</button></form>"
    )
    closed = "" if row.active else f' <small class="tag">{esc(tr("closed"))}</small>'
    seen = esc(_when(row.signed_in, tr("never")))
    return f"<tr><td>{esc(row.name)}{closed}</td><td>{role}</td><td>{seen}</td><td>{password}</td><td>{close}</td></tr>"


def members_page(
    who: AccountRow, project: ProjectRow, members: Sequence[MemberRow], owner: bool, *, error: str = ""
) -> HTMLResponse:
    """Who belongs to a project; its owners change that."""
    act = f"/members/{project.id}"
    rows = ""
    for row in members:
        label = tr("Role of {name}", name=row.name)
        role = esc(tr(SAID[row.role]))
        remove = ""
        if owner:
            hidden = f'<input type="hidden" name="user" value="{row.user_id}">'
            role = (
                f'<form method="post" action="{act}/role">{hidden}{_choice("role", label, PROJECT_ROLES, row.role)}'
                f"<button>{esc(tr('Set'))}</button></form>"
            )
            remove = (
                f'<form method="post" action="{act}/remove">{hidden}<button class="link danger" '
                f'aria-label="{esc(tr("Remove"))} {esc(row.name)}">{esc(tr("Remove"))}</button></form>'
            )
        rows += f"<tr><td>{esc(row.name)}</td><td>{role}</td><td>{remove}</td></tr>"
    name = _field(tr("Name of the account"), "name", more="required maxlength=80")
    add = (
        f'<form method="post" action="{act}/add" class="row">{name}'
        f"<label>{esc(tr('Role'))}{_choice('role', tr('Role'), PROJECT_ROLES, 'member')}</label>"
        f"<button>{esc(tr('Take in'))}</button></form>"
    )
    words = tr(
        "An owner changes members, a member works in the project, a viewer looks and translates. Admins see all projects."
    )
    body = (
        f'{_note(error)}<p class="quiet"><a href="/samples?project={project.id}">{esc(project.name)}</a></p>'
        f'<section class="card wide">{_table([tr("name"), tr("role"), ""], rows)}{add if owner else ""}'
        f'<p class="quiet">{esc(words)}</p></section>'
    )
    return answer(body, tr("Members"), who=who, status=400 if error else 200)


def _table(heads: Sequence[str], rows: str) -> str:
    cells = "".join(f"<th>{esc(head)}</th>" for head in heads)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>'


def _scopes(scopes: str) -> str:
    return ", ".join(tr(SAID[one]) for one in scopes.split(",") if one in SAID)


def _when(when: datetime.datetime | None, none: str) -> str:
    return moment(when) if when else none
