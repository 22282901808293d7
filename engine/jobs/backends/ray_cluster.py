"""Joining a Ray cluster, and what the cluster has. All of `import ray` in the program is in the modules `ray_*` here."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Mapping
from typing import Any

from engine.core.settings import Settings
from engine.errors import InputError, MissingError

NAMESPACE = "tailormt"
ANSWER_SECONDS = 5.0
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # it would report its use to its makers over the network
    "RAY_DEDUP_LOGS": "0",
    # A copy of the translator on a node with busy processors answers later than the tenth of a second that Serve gives it.
    "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "2",
}


def import_ray() -> Any:
    """The library. Raises MissingError where it is not installed."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingError(
            "Ray is not installed. Install the program with its extra ray, or set backend to local."
        ) from None
    return ray


def join(address: str) -> str:
    """Connect this process to the cluster, once; returns the cluster's address as other machines know it.

    Raises MissingError without the library, InputError where no cluster answers there.
    """
    ray = import_ray()
    if not ray.is_initialized():
        _answers(address)
        main = threading.current_thread() is threading.main_thread()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)} if main else {}
        try:
            ray.init(
                address=address or "auto", namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING,
                configure_logging=False,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise _nothing(address, (str(error).strip().splitlines() or [type(error).__name__])[0]) from None
        finally:  # Ray takes SIGTERM for itself, but who is called here wants to end in order
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return str(ray.get_runtime_context().gcs_address)


def leave() -> None:
    """Disconnect; nothing where there is no connection."""
    ray = import_ray()
    if ray.is_initialized():
        ray.shutdown()


def capacity() -> dict[str, float]:
    """CPUs and GPUs of all living nodes, as {"CPU": 8.0, "GPU": 1.0}."""
    return {str(name): float(value) for name, value in import_ray().cluster_resources().items()}


def room(own: Mapping[str, float]) -> int:
    """How many such shares of `share` are free now."""
    free = import_ray().available_resources()
    wanted = {"CPU": own["num_cpus"], "GPU": own["num_gpus"]}
    return int(min(free.get(name, 0.0) // amount for name, amount in wanted.items() if amount))


def wants_gpu(settings: Settings) -> bool:
    """Whether models run on GPUs: where the settings name them, or leave it open and the cluster has one."""
    return settings.device.startswith("cuda") or (settings.device == "auto" and capacity().get("GPU", 0) > 0)


def share(settings: Settings, *, gpu: bool) -> dict[str, float]:
    """What one job or actor takes of the cluster: {"num_cpus": …, "num_gpus": …}."""
    return {"num_cpus": float(settings.threads or 1), "num_gpus": settings.gpus_per_job if gpu else 0.0}


def without_secrets(settings: Settings) -> dict[str, object]:
    """For those that never open the store."""
    return settings.replace(database_url="").to_mapping()


def _answers(address: str) -> None:
    """Ray itself tries for minutes. Raises InputError where nothing listens at a named address."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _nothing(address, getattr(error, "strerror", None) or str(error)) from None


def _nothing(address: str, reason: str) -> InputError:
    return InputError(
        "There is no Ray cluster at {address} ({reason}). Start one with `ray start --head`, or name its address "
        "with --address.",
        address=address or "auto",
        reason=reason.rstrip("."),
    )
