"""The commands that stay: the studio, and a worker for its jobs."""

from __future__ import annotations

import argparse
import logging

from engine.cli.commands import Commands, Shown
from engine.cli.replicas import add_backend_flags
from engine.core.options import add_flags
from engine.core.settings import Settings


def register(top: Commands) -> None:
    for name in ("serve", "studio"):
        command = top.add(name, "open the studio and start a local worker", serve)
        command.add_argument("--open", action="store_true", help="open a browser")
        command.add_argument(
            "--no-sign-in", dest="sign_in", action="store_const", const="off", default=argparse.SUPPRESS,
            help="no sign-in, even if others can reach the studio",
        )  # fmt: skip
        add_flags(command, Settings, only=("host", "port", "trusted_proxies", "metrics", "translation_seconds"))
    command = top.add("worker", "run the queued jobs, on this machine or on a Ray cluster", worker)
    command.add_argument("--once", action="store_true", help="stop when the queue is empty")
    add_backend_flags(command)


def worker(args: argparse.Namespace) -> Shown:
    from engine.core.logging_setup import set_up_logs
    from engine.jobs.worker import run

    set_up_logs(args.settings.log_format, logging.INFO if args.settings.log_format == "json" else logging.WARNING)
    run(args.settings, once=args.once)
    return {"stopped": True}, ""


def serve(args: argparse.Namespace) -> Shown:
    import importlib

    # The engine knows nothing of the studio; this command is the one place that starts it, by name.
    importlib.import_module("studio.app").launch(args.settings, open_browser=args.open)
    return {"stopped": True}, ""
