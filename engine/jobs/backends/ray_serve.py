"""Replicas of the translator on a Ray cluster, using Ray Serve; each is a process with separate bases and plugins.

A replica loads a plugin when it is first requested and keeps up to `loaded_plugins`, evicting the least recently used. Serve
sends texts for a plugin to a replica that already holds it, if one is not too busy (model multiplexing). Requests use Ray's
connections; no port is opened.
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
from engine.jobs.backends.ray_cluster import free_slots, import_ray, join, share, wants_gpu, without_secrets
from engine.jobs.backends.remote_errors import describe_error, raise_remote_error
from engine.serving.batcher import MOST_WAITING, MOST_WEIGHT, Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache
from engine.serving.turns import OverloadedError

APP = "tailormt"
PIECE = 128  # texts sent to a replica at once
ASKING = 32  # concurrent requests to replicas
MOST_AT_ONCE = 64  # concurrent requests to one replica; its queue combines them into batches
TRIES = 4  # if a replica is lost during a request
READY_SECONDS = 300.0
GONE = ("ActorDiedError", "ActorUnavailableError", "WorkerCrashedError", "NodeDiedError", "RayActorError", "ObjectLostError")


class Translator:
    """One replica: the same model cache and the same queue as in the studio's process."""

    def __init__(self, settings: str) -> None:
        self.settings = Settings.from_mapping(json.loads(settings))
        with quick_imports():  # now, since a replica cannot respond while importing
            import torch

            model_class("marian")
        if self.settings.threads:
            torch.set_num_threads(model_threads(self.settings.threads))
        self.batcher = Batcher(ModelCache(self.settings))
        self.batcher.most_each = MOST_WAITING  # the studio's queue already limits each client
        self.loads = 0

    async def translate(self, work: str, texts: list[str]) -> Json:
        """The translations, or the error as serialised by `describe_error`."""
        try:
            spec = _read(work)
            if spec.plugin:
                await self.held(spec.plugin)
            return {"done": await asyncio.wrap_future(self.batcher.submit(spec, texts))}
        except OverloadedError as error:
            return {"busy": error.message}
        except Exception as error:
            return {"error": describe_error(error, os.uname().nodename)}

    async def held(self, plugin: str) -> str:
        """Registers the plugin with Serve as held by this replica; `ModelCache` loads it with the first text."""
        self.loads += 1
        return plugin

    async def state(self) -> Json:
        """The state of this replica: process, node, batches, loaded plugins and bases."""
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
    """Start the replicas, or change their number, and wait until they run; returns the status, like `replicas`.

    Raises InputError if they do not fit in the cluster.
    """
    address = join(settings.ray_address)
    import_ray()
    from ray import serve

    multiplexed = serve.multiplexed(max_num_models_per_replica=settings.loaded_plugins)(Translator.held)
    served = type("Translator", (Translator,), {"held": multiplexed, "__module__": __name__, "__doc__": Translator.__doc__})
    resources = share(settings, gpu=wants_gpu(settings))
    device = "cuda" if resources["num_gpus"] else "cpu"
    sent = without_secrets(settings.replace(home=str(settings.home_dir.resolve()), ray_address=address, device=device))
    more = count - replicas(settings)["running"]
    if more > max(0, free_slots(resources)):  # Serve would wait forever
        raise InputError(
            "The cluster has room for {room} more copies of the translator now, not {more}. Ask for fewer, or add nodes.",
            room=max(0, free_slots(resources)),
            more=more,
        )
    deployment = serve.deployment(
        name="Translator", num_replicas=count, max_ongoing_requests=MOST_AT_ONCE, ray_actor_options=resources,
        health_check_period_s=2, health_check_timeout_s=30, graceful_shutdown_timeout_s=5,
    )(served)  # fmt: skip
    serve.start(proxy_location="Disabled")
    serve.run(deployment.bind(json.dumps(sent)), name=APP, route_prefix=None, blocking=False)
    return replicas(settings)


def stop_replicas(settings: Settings) -> None:
    """Stop all replicas, if any."""
    join(settings.ray_address)
    from ray import serve

    serve.shutdown()


def replicas(settings: Settings) -> Json:
    """{"state", "running", "address"}; state is "" if no replicas were started."""
    address = join(settings.ray_address)
    from ray import serve

    status = serve.status().applications.get(APP)
    if status is None:
        return {"state": "", "running": 0, "address": address}
    running = sum(
        count
        for deployment in status.deployments.values()
        for state, count in deployment.replica_states.items()
        if state == "RUNNING"
    )
    return {"state": str(getattr(status.status, "value", status.status)), "running": running, "address": address}


class ReplicaBatcher(Batcher):
    """A queue that sends its batches to the replicas, several at once. Alignments are computed here."""

    part = PIECE
    most_weight = 4 * MOST_WEIGHT
    small_weight = MOST_WEIGHT
    threads = ASKING

    def __init__(self, models: ModelCache) -> None:
        super().__init__(models)
        self._handle: Any = None
        self._opening = threading.Lock()

    def _batch_key(self, work: TranslationSpec) -> None:
        return None  # the replicas combine requests into batches

    def _loading(self, work: TranslationSpec) -> bool:
        return False  # the replicas load the plugins

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[Any]) -> list[Any]:
        return super()._translate(works, texts) if works[0].alignment else self._ask(works[0], list(texts))

    def _ask(self, work: TranslationSpec, texts: list[str]) -> list[str]:
        sent = json.dumps(asdict(work))
        for tries_left in reversed(range(TRIES)):
            try:
                answer = self._translator(work.plugin).remote(sent, texts).result(timeout_s=READY_SECONDS)
                break
            except Exception as error:
                if type(error).__name__ not in GONE or not tries_left:
                    raise
                time.sleep(0.5)  # Serve replaces the replica; repeating a translation is safe
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
            "No copies of the translator run on the Ray cluster. Start them with `tailormt replicas start`, or set replicas to 0."
        ) from error


def replica_states(settings: Settings, tries: int = 20) -> Mapping[int, Json]:
    """{process id: state} of the replicas; sends several requests, since Serve chooses which replica responds."""
    join(settings.ray_address)

    from ray import serve

    handle = serve.get_app_handle(APP)

    def ask() -> list[Json]:
        answers = [handle.state.remote() for _ in range(tries)]
        return [answer.result(timeout_s=60) for answer in answers]

    # In a separate thread, since Serve's responses cannot be awaited synchronously inside a running event loop.
    with ThreadPoolExecutor(1) as pool:
        return {answer["pid"]: answer for answer in pool.submit(ask).result()}
