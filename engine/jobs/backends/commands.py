"""The flags of `tailormt worker` that say where jobs run, and the commands `tailormt replicas …`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from engine.options import describe
from engine.settings import Settings

__all__ = ["REPLICA_COMMANDS", "add_backend_flags", "add_replica_commands"]


def add_backend_flags(target: argparse.ArgumentParser) -> None:
    """--backend and --address."""
    backend = next(item for item in describe(Settings) if item.name == "backend")
    target.add_argument(
        "--backend", dest="backend", default=argparse.SUPPRESS, metavar="|".join(map(str, backend.choices or ())),
        help=f"{backend.help} [{backend.default}]",
    )  # fmt: skip
    _address(target)


def add_replica_commands(parser: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands under `tailormt replicas`."""
    found = command("start", "start copies of the translator, or change their number; they stay when this ends", parser)
    found.add_argument("--count", type=int, default=0, metavar="N", help="how many [the setting replicas, or 1]")
    _address(found)
    _address(command("status", "how many run", parser))
    _address(command("stop", "end all copies", parser))


def _address(target: argparse.ArgumentParser) -> None:
    item = next(item for item in describe(Settings) if item.name == "ray_address")
    target.add_argument(
        "--address", dest="ray_address", default=argparse.SUPPRESS, metavar="HOST:PORT",
        help=f"{item.help} [{item.default}]",
    )  # fmt: skip


def _said(found: dict[str, Any]) -> str:
    count = found["running"]
    return f"{count} {'copy' if count == 1 else 'copies'} of the translator on {found['address']}."


def start(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import start_replicas

    found = start_replicas(args.settings, args.count or args.settings.replicas or 1)
    return found, _said(found)


def status(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import replicas

    found = replicas(args.settings)
    return found, _said(found)


def stop(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import stop_replicas

    stop_replicas(args.settings)
    return {"stopped": True}, "No copies of the translator are running any more."


REPLICA_COMMANDS = {"replicas start": start, "replicas status": status, "replicas stop": stop}
