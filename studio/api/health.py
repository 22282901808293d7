"""Monitoring for operators: `/healthz`, `/readyz`, `/metrics`, and a log line for each request."""

from __future__ import annotations

import logging
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.core.actor import THIS_MACHINE, act_as
from engine.core.logging_setup import REQUEST, redacted
from engine.core.metrics import ANSWERS, REGISTRY, REQUEST_SECONDS
from engine.errors import TailorError
from studio.auth.identity import KEY, from_here, headers_of, sign_in_needed
from studio.services.service import Service

log = logging.getLogger("studio.requests")
OWN = re.compile(r"[\w.-]{1,64}")
JOB_BUCKETS = (10.0, 60.0, 300.0, 1800.0, 3600.0, 14400.0, 86400.0)  # seconds
CLIENT_LEFT = 499  # the status that nginx logs
READING = ["GET", "HEAD"]
CACHE_SECONDS = 5.0  # seconds for which the metrics are cached


class MetricsMiddleware:
    """Assigns each request an id, counts, times and logs it. Outside the gateway; plain ASGI.

    A client that disconnects during its request is not an error of the studio, since nobody waits for the response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        header = headers_of(scope).get("x-request-id", "")
        request_id = header if OWN.fullmatch(header) else secrets.token_hex(8)
        REQUEST.set(request_id)
        status, started = 500, time.perf_counter()

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        kind = kind_of(scope["path"])
        try:
            with REQUEST_SECONDS.labels(kind).time():
                await self.app(scope, receive, answer)
        except ClientDisconnect:
            status = CLIENT_LEFT
        finally:
            ANSWERS.labels(kind, f"{status // 100}xx").inc()
            seconds = round(time.perf_counter() - started, 4)
            guest = scope.get(KEY)
            actor = guest.access.who if guest is not None and guest.access is not None else ""
            path = redacted(scope["path"])  # without the query, which may contain a key or a text
            fields = {"method": scope["method"], "path": path, "status": status, "seconds": seconds, "who": actor}
            log.info("%s %s %s %.3f s", scope["method"], path, status, seconds, extra={"fields": fields})


def kind_of(path: str) -> str:
    """The kind of a request, as a label that contains no numbers or names."""
    if path.startswith("/gradio_api/"):
        return "stream" if "/queue/data" in path or "/heartbeat" in path else "event"
    if path.startswith("/api/"):
        return "api"
    if path.startswith(("/v2/", "/v3/", "/cat/")):
        return "deepl"
    if path.startswith("/download/"):
        return "download"
    if path.startswith(("/assets/", "/static/", "/tm/", "/svelte/")):
        return "asset"
    return "page"


def add_health_routes(app: FastAPI, service: Service) -> None:
    """Add /healthz and /readyz, which are public and disclose nothing, and /metrics for callers with permission."""
    figures = Figures(service)

    @app.api_route("/healthz", methods=READING, include_in_schema=False)
    async def healthz() -> Response:  # async, so that it answers even if all threads are busy
        return PlainTextResponse("ok\n", headers={"Cache-Control": "no-store"})

    @app.api_route("/readyz", methods=READING, include_in_schema=False)
    def readyz() -> Response:
        result = checks(service)
        ready = all(result.values())
        return JSONResponse({"ready": ready, "checks": result}, 200 if ready else 503, {"Cache-Control": "no-store"})

    @app.api_route("/metrics", methods=READING, include_in_schema=False)
    def metrics(request: Request) -> Response:
        if service.settings.metrics == "off":
            return PlainTextResponse("There is nothing here.", 404)
        if not may_read(request, service):
            words = "The metrics are for this machine, and for tokens of the scope metrics or admin."
            return PlainTextResponse(words, 401, {"WWW-Authenticate": "Bearer"})
        return Response(figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def may_read(request: Request, service: Service) -> bool:
    """Whether the sender may read the metrics: a local request, an admin, or a program with a suitable token."""
    guest = request.scope[KEY]
    if service.settings.metrics == "open" or (guest.account is not None and guest.account.role == "admin"):
        return True
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        with act_as(THIS_MACHINE):
            token = service.store.tokens.find(secret.strip())
        return token is not None and (token.allows("metrics") or token.allows("admin"))
    if service.settings.metrics == "auto" and sign_in_needed(service.settings):
        return False  # requests through a local proxy that adds no headers would look local
    return from_here(request.scope, headers_of(request.scope))


def checks(service: Service) -> dict[str, bool]:
    """Whether the store, a worker and a base are available."""
    from engine.jobs.worker import worker_alive

    result = {"store": False, "worker": False, "base": False}
    try:
        with act_as(THIS_MACHINE):
            result["store"] = not service.store.lost()
            result["worker"] = any(worker_alive(row) for row in service.store.workers.list())
        result["base"] = bool(service.catalog.bases())
    except TailorError as error:
        log.warning("not ready: %s", error)
    return result


class Figures:
    """The content of /metrics in Prometheus format. Uses a separate registry, so that one process can run several studios."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._text, self._moment = b"", -CACHE_SECONDS

    def text(self) -> bytes:
        with self._lock:
            if time.monotonic() - self._moment >= CACHE_SECONDS:
                registry = CollectorRegistry()
                ProcessCollector(registry=registry)
                PlatformCollector(registry=registry)
                registry.register(self)  # type: ignore[arg-type]
                self._text, self._moment = generate_latest(registry), time.monotonic()
            return self._text

    def collect(self) -> Iterator[Any]:
        """Yield the metrics; called by prometheus_client."""
        with act_as(THIS_MACHINE):
            rows = list(self._store())
        yield from rows
        yield from REGISTRY.collect()
        yield from gpus()

    def _store(self) -> Iterator[Any]:
        up = GaugeMetricFamily("tailormt_store_up", "Whether the store answers.")
        try:
            jobs = self.service.store.jobs
            counts, times, oldest = jobs.counted(), jobs.durations(), jobs.oldest_waiting()
            running = {job.id: job.kind for job in jobs.list(states=("running",))}
            workers = self.service.store.workers.list()
        except TailorError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield GaugeMetricFamily("tailormt_workers", "Workers heard of in the last seconds.", value=len(workers))
        states = GaugeMetricFamily("tailormt_jobs", "Jobs by kind and state; queued ones are the queue's length.",
                                   labels=["kind", "state"])  # fmt: skip
        for key, count in sorted(counts.items()):
            states.add_metric(key, count)
        yield states
        waits = time.time() - oldest.created.timestamp() if oldest else 0.0
        yield GaugeMetricFamily("tailormt_queue_oldest_seconds", "How long the oldest waiting job waits.", value=waits)
        spent = HistogramMetricFamily("tailormt_job_seconds", "Seconds of the jobs that succeeded, by kind.", labels=["kind"])
        for kind, values in sorted(times.items()):
            steps = [(str(bound), float(sum(value <= bound for value in values))) for bound in JOB_BUCKETS]
            spent.add_metric([kind], [*steps, ("+Inf", float(len(values)))], sum(values))
        yield spent
        memory = GaugeMetricFamily("tailormt_job_memory_bytes", "Memory of the jobs at work.", labels=["job", "kind", "of"])
        for number, kind in running.items():
            usage = self.service.store.usage.get(number)
            if usage is not None:
                memory.add_metric([str(number), kind, "processor"], usage.memory)
                memory.add_metric([str(number), kind, "gpu"], usage.gpu)
        yield memory


def gpus() -> Iterator[Any]:
    """Yield the memory of the GPUs that this process uses, without loading torch."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    result = GaugeMetricFamily("tailormt_gpu_memory_bytes", "Memory of each GPU.", labels=["gpu", "what"])
    if cuda is not None and getattr(cuda, "is_initialized", bool)():
        for number in range(cuda.device_count()):
            free, total = cuda.mem_get_info(number)
            result.add_metric([str(number), "used"], total - free)
            result.add_metric([str(number), "total"], total)
            result.add_metric([str(number), "own"], cuda.memory_reserved(number))
    yield result
