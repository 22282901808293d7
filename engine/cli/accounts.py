"""The commands `tailormt user …` for administrators of a studio, and `tailormt audit`, the audit log."""

from __future__ import annotations

import argparse
import datetime
import getpass
import sys
from typing import TYPE_CHECKING

from engine.cli.commands import Shown, store_of
from engine.core.text_table import table
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.accounts import AccountRow


def _password(args: argparse.Namespace) -> str:
    """Read the password twice from the terminal, or from stdin; the command line would be visible to other users."""
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise InputError("There is no terminal to ask for the password at. Give it with --password-stdin.")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != first:
        raise InputError("The two passwords differ. Nothing was changed.")
    return first


def _named(args: argparse.Namespace) -> tuple[Store, AccountRow]:
    """The store, and the account named on the command line."""
    store = store_of(args)
    return store, store.accounts.named(args.name)


def _shown(row: AccountRow, words: str) -> Shown:
    return {"id": row.id, "name": row.name, "role": row.role, "active": row.active}, words


def user_add(args: argparse.Namespace) -> Shown:
    row = store_of(args).accounts.create(args.name, _password(args), args.role)
    return _shown(row, f"{row.name} can sign in as {row.role}.")


def user_list(args: argparse.Namespace) -> Shown:
    rows = store_of(args).accounts.list()
    value = [
        {"id": row.id, "name": row.name, "role": row.role, "active": row.active,
         "signed_in": row.signed_in.isoformat() if row.signed_in else None}
        for row in rows
    ]  # fmt: skip
    cells = [
        [row.id, row.name, row.role if row.active else f"{row.role}, closed",
         f"{row.signed_in:%Y-%m-%d %H:%M}" if row.signed_in else "never"]
        for row in rows
    ]  # fmt: skip
    text = table(["id", "name", "role", "signed in"], cells)
    return value, text if rows else "There are no accounts. Make one with `tailormt user add NAME --role admin`."


def user_role(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    row = store.accounts.change(row.id, role=args.role)
    return _shown(row, f"{row.name} is {row.role} now.")


def user_password(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    store.accounts.set_password(row.id, _password(args))
    return _shown(row, f"{row.name} has a new password; sessions that were open have ended.")


def user_factor_off(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    store.second_factors.remove(row.id)
    return {"account": row.name, "second_factor": False}, f"{row.name} signs in with the password alone."


def user_close(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    row = store.accounts.change(row.id, active=False)
    return _shown(row, f"Nobody can sign in as {row.name} now.")


def user_open(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    row = store.accounts.change(row.id, active=True)
    return _shown(row, f"{row.name} can sign in again.")


def user_remove(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    store.accounts.delete(row.id)
    return _shown(row, f"The account {row.name} is removed; projects stay.")


def user_join(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    project = store.projects.get(args.project)
    store.members.set(project.id, row.id, args.role)
    return _shown(row, f"{row.name} is {args.role} of {project.name} now.")


def user_leave(args: argparse.Namespace) -> Shown:
    store, row = _named(args)
    project = store.projects.get(args.project)
    store.members.remove(project.id, row.id)
    return _shown(row, f"{row.name} no longer belongs to {project.name}.")


def audit(args: argparse.Namespace) -> Shown:
    since = None
    if args.since:
        try:
            since = datetime.datetime.fromisoformat(args.since)
        except ValueError:
            raise InputError(f"{args.since} is no date. Write it as 2026-11-21.") from None
        since = since if since.tzinfo else since.astimezone()
    if args.limit < 1:
        raise InputError("--limit: give a number from 1 on.")
    rows = store_of(args).audit.list(project_id=args.project, who=args.who, action=args.acts, since=since, limit=args.limit)
    value = [
        {"id": row.id, "moment": row.moment.isoformat(), "who": row.who, "address": row.address, "action": row.action,
         "project": row.project_id, "target": row.target, "detail": row.detail}
        for row in rows
    ]  # fmt: skip
    text = table(
        ["time", "account", "from", "action", "project", "number", "object"],
        [[f"{row.moment.astimezone():%Y-%m-%d %H:%M:%S}", row.who, row.address, row.action, row.project_id or "",
          row.target, row.detail] for row in rows],
    )  # fmt: skip
    return value, text if rows else "No matching entries."
