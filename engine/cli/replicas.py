"""The flags of `tailormt worker` that say where jobs run, and the commands `tailormt replicas …`."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.commands import Commands
from engine.core.options import describe
from engine.core.settings import Settings


def add_backend_flags(target: argparse.ArgumentParser) -> None:
    """--backend and --address."""
    backend = next(item for item in describe(Settings) if item.name == "backend")
    target.add_argument(
        "--backend", dest="backend", default=argparse.SUPPRESS, metavar="|".join(map(str, backend.choices or ())),
        help=f"{backend.help} [{backend.default}]",
    )  # fmt: skip
    _address(target)


def register(top: Commands) -> None:
    commands = top.group("replicas", "copies of the translator on a Ray cluster")
    command = commands.add(
        "start", "start copies of the translator, or change their number; they stay when this ends", start
    )
    command.add_argument("--count", type=int, default=0, metavar="N", help="how many [the setting replicas, or 1]")
    _address(command)
    _address(commands.add("status", "show how many are running", status))
    _address(commands.add("stop", "stop all copies", stop))


def _address(target: argparse.ArgumentParser) -> None:
    item = next(item for item in describe(Settings) if item.name == "ray_address")
    target.add_argument(
        "--address", dest="ray_address", default=argparse.SUPPRESS, metavar="HOST:PORT",
        help=f"{item.help} [{item.default}]",
    )  # fmt: skip


def _running_text(state: dict[str, object]) -> str:
    count = state["running"]
    return f"{count} {'copy' if count == 1 else 'copies'} of the translator on {state['address']}."


def start(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import start_replicas

    result = start_replicas(args.settings, args.count or args.settings.replicas or 1)
    return result, _running_text(result)


def status(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import replicas

    result = replicas(args.settings)
    return result, _running_text(result)


def stop(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.jobs.backends.ray_serve import stop_replicas

    stop_replicas(args.settings)
    return {"stopped": True}, "No copies of the translator are running any more."
