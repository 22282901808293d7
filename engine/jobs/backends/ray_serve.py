"""Copies of the translator on a Ray cluster, by Ray Serve; each is a process with its own bases and plugins.

A copy loads a plugin when a text first asks for it and keeps as many as `loaded_plugins` says, the one used longest ago
makes room. Serve sends texts for a plugin to a copy that holds it already, where there is one that is not too busy
(model multiplexing). Copies are asked through Ray's own connections; no port is opened.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.errors import InputError
from engine.jobs.backends.ray_cluster import import_ray, join, room, share, wants_gpu, without_secrets
from engine.jobs.backends.told import raise_told, tell
from engine.serving import Batcher, Busy, Models, Work
from engine.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["APP", "ReplicaBatcher", "Translator", "replicas", "start_replicas", "stop_replicas"]

APP = "tailormt"
PIECE = 128  # texts sent to one copy at once
ASKING = 32  # pieces on their way at once
MOST_AT_ONCE = 64  # requests that one copy takes; its queue puts them into common batches
TRIES = 4  # where a copy is lost in the middle
READY_SECONDS = 300.0
GONE = (
    "ActorDiedError",
    "ActorUnavailableError",
    "WorkerCrashedError",
    "NodeDiedError",
    "RayActorError",
    "ObjectLostError",
)


class Translator:
    """One copy: the same loaded models and the same queue as in the studio's process."""

    def __init__(self, settings: str) -> None:
        self.settings = Settings.from_mapping(json.loads(settings))
        if self.settings.threads:
            import torch

            torch.set_num_threads(self.settings.threads)
        self.batcher = Batcher(Models(self.settings))
        self.loads = 0

    async def translate(self, work: str, texts: list[str]) -> dict[str, Any]:
        """The translations, or what went wrong as `told` has it."""
        try:
            asked = _read(work)
            if asked.plugin:
                await self.held(asked.plugin)
            return {"done": await asyncio.wrap_future(self.batcher.submit(asked, texts))}
        except Busy as error:
            return {"busy": str(error)}
        except Exception as error:
            return {"told": tell(error, os.uname().nodename)}

    async def held(self, plugin: str) -> str:
        """Tells Serve that this copy holds the plugin; `Models` loads it with the first text."""
        self.loads += 1
        return plugin

    async def about(self) -> dict[str, Any]:
        """What this copy holds."""
        models = self.batcher.models
        return {
            "pid": os.getpid(),
            "node": os.uname().nodename,
            "batches": self.batcher.batches,
            "plugins": [key[3] for key in models._plugins],
            "bases": list(models._bases),
            "loads": self.loads,
        }


def _read(work: str) -> Work:
    values = json.loads(work)
    return Work(**values | {"decoding": tuple((name, value) for name, value in values["decoding"])})


def start_replicas(settings: Settings, count: int) -> dict[str, Any]:
    """Start the copies, or change their number, and wait until they are there. Raises InputError where the cluster has
    no room for them.
    """
    address = join(settings.ray_address)
    import_ray()
    from ray import serve

    held = serve.multiplexed(max_num_models_per_replica=settings.loaded_plugins)(Translator.held)
    served = type("Translator", (Translator,), {"held": held, "__module__": __name__, "__doc__": Translator.__doc__})
    own = share(settings, gpu=wants_gpu(settings))
    device = "cuda" if own["num_gpus"] else "cpu"
    sent = without_secrets(settings.replace(home=str(settings.home_dir.resolve()), ray_address=address, device=device))
    more = count - replicas(settings)["running"]
    if more > max(0, room(own)):  # Serve would wait for ever
        raise InputError(
            f"The cluster has room for {max(0, room(own))} more copies of the translator now, not {more}. Ask for fewer, or add "
            "nodes."
        )
    deployment = serve.deployment(
        name="Translator", num_replicas=count, max_ongoing_requests=MOST_AT_ONCE, ray_actor_options=own,
        health_check_period_s=2, health_check_timeout_s=30, graceful_shutdown_timeout_s=5,
    )(served)  # fmt: skip
    serve.start(proxy_location="Disabled")
    serve.run(deployment.bind(json.dumps(sent)), name=APP, route_prefix=None, blocking=False)
    return replicas(settings)


def stop_replicas(settings: Settings) -> None:
    """End all copies; nothing where there are none."""
    join(settings.ray_address)
    from ray import serve

    serve.shutdown()


def replicas(settings: Settings) -> dict[str, Any]:
    """{"state", "running", "wanted", "address"}; state is "" where none were started."""
    address = join(settings.ray_address)
    from ray import serve

    status = serve.status().applications.get(APP)
    if status is None:
        return {"state": "", "running": 0, "address": address}
    running = sum(
        count
        for one in status.deployments.values()
        for state, count in one.replica_states.items()
        if state == "RUNNING"
    )
    return {"state": str(getattr(status.status, "value", status.status)), "running": running, "address": address}


class ReplicaBatcher(Batcher):
    """Stands where a `Batcher` does, and asks the copies. What is no translation, such as alignment, uses `models` here."""

    def __init__(self, models: Models) -> None:
        super().__init__(models)
        self._pool = concurrent.futures.ThreadPoolExecutor(ASKING, thread_name_prefix="replicas")
        self._handle: Any = None

    def submit(self, work: Work, texts: Sequence[str]) -> Future[list[str]]:
        if not texts:
            return super().submit(work, texts)
        pieces = [list(texts[place : place + PIECE]) for place in range(0, len(texts), PIECE)]
        asked = [self._pool.submit(self._ask, work, piece) for piece in pieces]
        return asked[0] if len(asked) == 1 else _joined(asked)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, work: Work, texts: list[str]) -> list[str]:
        sent = json.dumps(asdict(work))
        for left in reversed(range(TRIES)):
            try:
                answer = self._translator(work.plugin).remote(sent, texts).result(timeout_s=READY_SECONDS)
                break
            except Exception as error:
                if type(error).__name__ not in GONE or not left:
                    raise
                time.sleep(0.5)  # Serve makes another copy; a translation asked twice is the same
        self.batches += 1
        if "busy" in answer:
            raise Busy(answer["busy"])
        if "told" in answer:
            raise_told(answer["told"])
        found: list[str] = answer["done"]
        return found

    def _translator(self, plugin: str) -> Any:
        if self._handle is None:
            join(self.models.settings.ray_address)
            from ray import serve

            try:
                self._handle = serve.get_app_handle(APP)
            except Exception as error:
                raise InputError(
                    "No copies of the translator run on the Ray cluster. Start them with `tailormt replicas start`, or set "
                    "replicas to 0."
                ) from error
        options = {"multiplexed_model_id": plugin} if plugin else {}
        return self._handle.options(**options).translate


def _joined(parts: Sequence[Future[list[str]]]) -> Future[list[str]]:
    """One future for all, in order; cancelling it cancels those that were not begun."""
    whole: Future[list[str]] = concurrent.futures.Future()

    def look(_: Future[list[str]]) -> None:
        if whole.cancelled():
            for part in parts:
                part.cancel()
        elif all(part.done() for part in parts) and whole.set_running_or_notify_cancel():
            broken = next((part.exception() for part in parts if not part.cancelled() and part.exception()), None)
            if broken is not None:
                whole.set_exception(broken)
            else:
                whole.set_result([text for part in parts for text in part.result()])

    for part in parts:
        part.add_done_callback(look)
    return whole


def about(settings: Settings, tries: int = 20) -> Mapping[int, dict[str, Any]]:
    """What each copy that answered holds, by its process number; asks several times, since Serve chooses who answers."""
    join(settings.ray_address)
    from ray import serve

    handle = serve.get_app_handle(APP)
    answers = [handle.about.remote() for _ in range(tries)]
    return {answer["pid"]: answer for answer in (one.result(timeout_s=60) for one in answers)}
