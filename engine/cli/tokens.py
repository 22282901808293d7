"""The commands `tailormt token …`: API tokens, with which programs access the studio."""

from __future__ import annotations

import argparse

from engine.cli.commands import Shown, store_of
from engine.core.text_table import table


def token_create(args: argparse.Namespace) -> Shown:
    store = store_of(args)
    user = store.accounts.named(args.user).id if args.user else None
    row, secret = store.tokens.create(
        args.name, args.scope.split(","), user_id=user, project_id=args.project, days=args.days, quota=args.quota
    )
    text = f"{secret}\nThis is token {row.id}, {row.name}, for {row.scopes}. It is not shown again."
    return {"id": row.id, "name": row.name, "scopes": row.scopes.split(","), "token": secret}, text


def token_list(args: argparse.Namespace) -> Shown:
    rows = store_of(args).tokens.list(revoked=args.revoked)
    value = [
        {"id": row.id, "name": row.name, "begins": row.shown, "scopes": row.scopes.split(","),
         "created": row.created.isoformat(), "used": row.used.isoformat() if row.used else None,
         "revoked": row.revoked.isoformat() if row.revoked else None, "characters": row.characters,
         "user": row.user_id, "project": row.project_id, "expires": row.expires.isoformat() if row.expires else None,
         "quota": row.quota, "characters_this_month": row.this_month}
        for row in rows
    ]  # fmt: skip
    text = table(
        ["id", "name", "begins", "scopes", "project", "used", "characters", "this month", "expires", "revoked"],
        [[row.id, row.name, f"{row.shown}…", row.scopes, row.project_id or "all",
          f"{row.used:%Y-%m-%d %H:%M}" if row.used else "never", f"{row.characters:,}",
          f"{row.this_month:,}" + (f" of {row.quota:,}" if row.quota else ""),
          f"{row.expires:%Y-%m-%d}" if row.expires else "never", f"{row.revoked:%Y-%m-%d}" if row.revoked else ""]
         for row in rows],
    )  # fmt: skip
    return value, text if rows else "There are no tokens. Make one with `tailormt token create NAME`."


def token_revoke(args: argparse.Namespace) -> Shown:
    row = store_of(args).tokens.revoke(args.id)
    return {"id": row.id}, f"Token {row.id}, {row.name}, opens nothing any more."
