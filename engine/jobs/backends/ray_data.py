"""Parts of one job's work on several nodes: a Ray Dataset with one part per row, mapped over a pool of actors.

An actor loads a base or a parser once and processes parts one by one. Ray repeats the parts of a lost node on other nodes and
returns the results in order. The job's process is the driver; its actors end with it.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.jobs.backends.ray_cluster import free_slots, import_ray, join, share, wants_gpu, without_secrets
from engine.jobs.backends.remote_errors import describe_error, raise_remote_error

LOOK_SECONDS = 0.2

log = logging.getLogger(__name__)


class Worker:
    """The work of an actor: maps batches of one row, {"part": [JSON]}, to {"result": [JSON]}."""

    def __init__(self, stage: str, arguments: str) -> None:
        module, _, name = stage.partition(":")
        self.stage: Any = None
        self.fault: dict[str, str] | None = None
        try:
            self.stage = getattr(importlib.import_module(module), name)(**json.loads(arguments))
        except Exception as error:  # Ray would recreate the actor endlessly
            self.fault = describe_error(error, os.uname().nodename)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        text = self.fault
        if text is None:
            try:
                return {"result": [json.dumps({"done": self.stage(json.loads(part))}) for part in batch["part"]]}
            except Exception as error:
                text = describe_error(error, os.uname().nodename)
        return {"result": [json.dumps({"error": text}) for _ in batch["part"]]}


class RayMap:
    """Distributes parts over the actors of a cluster, up to the number set and the free resources."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.taken = 0  # parts processed by actors

    def take(self, stage: str, arguments: Mapping[str, Any], parts: Sequence[Any], progress: Progress) -> Iterator[Any] | None:
        join(self.settings.ray_address)
        resources = share(self.settings, gpu=wants_gpu(self.settings) and not stage.endswith(":Parse"))
        actors = min(self.settings.ray_actors, len(parts), free_slots(resources))
        if actors < 1:
            log.info("no room in the cluster for %s: done here", stage)
            return None
        log.info("%s: %d parts over up to %d actors", stage, len(parts), actors)
        device = "cuda" if resources["num_gpus"] else "cpu"
        worker_arguments = json.dumps({**arguments, "settings": without_secrets(self.settings.replace(device=device))})
        rows = [{"part": json.dumps(part)} for part in parts]
        return self._results(rows, stage, worker_arguments, actors, resources, progress)

    def _results(
        self, rows: list[dict[str, str]], stage: str, arguments: str, actors: int, resources: Mapping[str, float],
        progress: Progress,
    ) -> Iterator[Any]:  # fmt: skip
        result: queue.Queue[Any] = queue.Queue()
        over = threading.Event()
        work = functools.partial(_run, rows, stage, arguments, actors, dict(resources), result, over)
        threading.Thread(target=work, name="ray-data", daemon=True).start()
        done = 0
        try:
            while done < len(rows):
                progress.check()
                try:
                    item = result.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    continue
                if isinstance(item, BaseException):
                    raise item
                answer = json.loads(item)
                if "error" in answer:
                    raise_remote_error(answer["error"])
                done += 1
                self.taken += 1
                yield answer["done"]
        finally:
            over.set()


def _run(
    rows: list[dict[str, str]], stage: str, arguments: str, actors: int, resources: dict[str, float], output: queue.Queue[Any],
    over: threading.Event,
) -> None:  # fmt: skip
    """In a thread, put each result into the queue as it arrives, or the error that ended the work."""
    import_ray()
    from ray import data

    try:
        context = data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        results = data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Worker, fn_constructor_args=(stage, arguments), batch_size=1, compute=data.ActorPoolStrategy(size=actors), **resources
        )
        for row in results.iter_rows():
            if over.is_set():  # leaving the loop stops the actors
                break
            output.put(str(row["result"]))
    except BaseException as error:
        output.put(error)
