"""Joining a Ray cluster, and its capacity. Ray is only imported in the modules `ray_*` of this package."""

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
    "RAY_USAGE_STATS_ENABLED": "0",  # disables usage reports over the network
    "RAY_DEDUP_LOGS": "0",
    # On a busy node, a translator replica may not respond within Serve's default deadline of 0.1 s.
    "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "2",
}


def import_ray() -> Any:
    """Import Ray. Raises MissingError if it is not installed."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingError("Ray is not installed. Install the program with its extra ray, or set backend to local.") from None
    return ray


def join(address: str) -> str:
    """Connect this process to the cluster, if not connected yet; returns the cluster's address for other machines.

    Raises MissingError without the library, InputError if no cluster responds at the address.
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
        finally:  # Ray replaces the SIGTERM handler, but callers must be able to shut down normally
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return str(ray.get_runtime_context().gcs_address)


def leave() -> None:
    """Disconnect from the cluster, if connected."""
    ray = import_ray()
    if ray.is_initialized():
        ray.shutdown()


def capacity() -> dict[str, float]:
    """CPUs and GPUs of all live nodes, such as {"CPU": 8.0, "GPU": 1.0}."""
    return {str(name): float(value) for name, value in import_ray().cluster_resources().items()}


def free_slots(resources: Mapping[str, float]) -> int:
    """How many jobs or actors that need `resources`, as returned by `share`, currently fit in the cluster."""
    free = import_ray().available_resources()
    amounts = {"CPU": resources["num_cpus"], "GPU": resources["num_gpus"]}
    return int(min(free.get(name, 0.0) // amount for name, amount in amounts.items() if amount))


def wants_gpu(settings: Settings) -> bool:
    """Whether models run on GPUs: if set, or if the device is "auto" and the cluster has a GPU."""
    return settings.device.startswith("cuda") or (settings.device == "auto" and capacity().get("GPU", 0) > 0)


def share(settings: Settings, *, gpu: bool) -> dict[str, float]:
    """The resources of one job or actor: {"num_cpus": …, "num_gpus": …}."""
    return {"num_cpus": float(settings.threads or 1), "num_gpus": settings.gpus_per_job if gpu else 0.0}


def without_secrets(settings: Settings) -> dict[str, object]:
    """The settings without the database URL, for processes that never open the store."""
    return settings.replace(database_url="").to_mapping()


def _answers(address: str) -> None:
    """Raises InputError if nothing listens at a host and port; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _nothing(address, getattr(error, "strerror", None) or str(error)) from None


def _nothing(address: str, reason: str) -> InputError:
    return InputError(
        "There is no Ray cluster at {address} ({reason}). Start one with `ray start --head`, or name its address with --address.",
        address=address or "auto",
        reason=reason.rstrip("."),
    )
