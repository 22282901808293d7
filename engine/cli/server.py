"""The long-running commands: the studio, and a worker for its jobs."""

from __future__ import annotations

import argparse
import importlib
import logging

from engine.cli.commands import Shown


def worker(args: argparse.Namespace) -> Shown:
    from engine.core.logging_setup import set_up_logs
    from engine.jobs.worker import run

    set_up_logs(args.settings.log_format, logging.INFO if args.settings.log_format == "json" else logging.WARNING)
    run(args.settings, once=args.once)
    return {"stopped": True}, ""


def serve(args: argparse.Namespace) -> Shown:

    # The engine does not depend on the studio; only this command starts it, by name.
    importlib.import_module("studio.app").launch(args.settings, open_browser=args.open)
    return {"stopped": True}, ""
