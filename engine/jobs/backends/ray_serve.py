"""Copies of the translator on a Ray cluster, by Ray Serve; each is a process with its own bases and plugins.

A copy loads a plugin when a text first asks for it and keeps as many as `loaded_plugins` says, the one used longest ago
makes room. Serve sends texts for a plugin to a copy that holds it already, where there is one that is not too busy
(model multiplexing). Copies are asked through Ray's own connections; no port is opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from engine.base.load import model_class
from engine.base.quick_imports import quick_imports
from engine.core.cores import model_threads
from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.errors import InputError
from engine.jobs.backends.ray_cluster import import_ray, join, room, share, wants_gpu, without_secrets
from engine.jobs.backends.remote_errors import describe_error, raise_remote_error
from engine.serving.batcher import MOST_WAITING, MOST_WEIGHT, Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache
from engine.serving.turns import OverloadedError

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
        with quick_imports():  # now, since a copy that imports answers nobody
            import torch

            model_class("marian")
        if self.settings.threads:
            torch.set_num_threads(model_threads(self.settings.threads))
        self.batcher = Batcher(ModelCache(self.settings))
        self.batcher.most_each = MOST_WAITING  # the studio's own queue has seen to the shares of its clients
        self.loads = 0

    async def translate(self, work: str, texts: list[str]) -> Json:
        """The translations, or the error as serialised by `describe_error`."""
        try:
            asked = _read(work)
            if asked.plugin:
                await self.held(asked.plugin)
            return {"done": await asyncio.wrap_future(self.batcher.submit(asked, texts))}
        except OverloadedError as error:
            return {"busy": error.message}
        except Exception as error:
            return {"error": describe_error(error, os.uname().nodename)}

    async def held(self, plugin: str) -> str:
        """Tells Serve that this copy holds the plugin; `Models` loads it with the first text."""
        self.loads += 1
        return plugin

    async def about(self) -> Json:
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


def _read(work: str) -> TranslationSpec:
    values = json.loads(work)
    return TranslationSpec(**values | {"decoding": tuple((name, value) for name, value in values["decoding"])})


def start_replicas(settings: Settings, count: int) -> Json:
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
            "The cluster has room for {room} more copies of the translator now, not {more}. Ask for fewer, or add "
            "nodes.",
            room=max(0, room(own)),
            more=more,
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


def replicas(settings: Settings) -> Json:
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
    """The same queue, whose batches go to the copies, several at once. Alignments are made here."""

    part = PIECE
    most_weight = 4 * MOST_WEIGHT
    small_weight = MOST_WEIGHT
    threads = ASKING

    def __init__(self, models: ModelCache) -> None:
        super().__init__(models)
        self._handle: Any = None
        self._opening = threading.Lock()

    def _batch_key(self, work: TranslationSpec) -> None:
        return None  # a copy puts what it is asked into common batches

    def _loading(self, work: TranslationSpec) -> bool:
        return False  # the copies load the plugins

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[Any]) -> list[Any]:
        return super()._translate(works, texts) if works[0].alignment else self._ask(works[0], list(texts))

    def _ask(self, work: TranslationSpec, texts: list[str]) -> list[str]:
        sent = json.dumps(asdict(work))
        for left in reversed(range(TRIES)):
            try:
                answer = self._translator(work.plugin).remote(sent, texts).result(timeout_s=READY_SECONDS)
                break
            except Exception as error:
                if type(error).__name__ not in GONE or not left:
                    raise
                time.sleep(0.5)  # Serve makes another copy; a translation asked twice is the same
        if "busy" in answer:
            raise OverloadedError(answer["busy"])
        if "error" in answer:
            raise_remote_error(answer["error"])
        return answer["done"]

    def _translator(self, plugin: str) -> Any:
        with self._opening:
            if self._handle is None:
                self._handle = _open_handle(self.models.settings)
        options = {"multiplexed_model_id": plugin} if plugin else {}
        return self._handle.options(**options).translate


def _open_handle(settings: Settings) -> Any:
    join(settings.ray_address)
    from ray import serve

    try:
        return serve.get_app_handle(APP)
    except Exception as error:
        raise InputError(
            "No copies of the translator run on the Ray cluster. Start them with `tailormt replicas start`, or set replicas "
            "to 0."
        ) from error


def about(settings: Settings, tries: int = 20) -> Mapping[int, Json]:
    """What each copy that answered holds, by its process number; asks several times, since Serve chooses who answers."""
    join(settings.ray_address)

    from ray import serve

    handle = serve.get_app_handle(APP)

    def ask() -> list[Json]:
        answers = [handle.about.remote() for _ in range(tries)]
        return [one.result(timeout_s=60) for one in answers]

    # In a thread of its own, since Serve's answers cannot be waited for where an event loop runs.
    with ThreadPoolExecutor(1) as pool:
        return {answer["pid"]: answer for answer in pool.submit(ask).result()}
