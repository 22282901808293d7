"""The commands `tailormt replicas …`: start, stop and report replicas of the translator on a Ray cluster."""

from __future__ import annotations

import argparse
from typing import Any


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
