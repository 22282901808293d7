"""The studio's server: REST API, sign-in, downloads and health routes, and the pages of studio.pages.mount."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.core.actor import THIS_MACHINE, act_as
from engine.core.logging_setup import set_up_logs
from engine.core.settings import Settings
from engine.errors import InputError
from engine.jobs import start_background_worker
from engine.store.project_files import finish_deletions
from engine.store.sharing import share_of
from studio.api import create_api
from studio.api.account_routes import add_door_routes, check_door
from studio.api.dispatch import Dispatcher, OwnMethods, is_api
from studio.api.downloads import add_download_routes
from studio.api.errors import shaped
from studio.api.head_requests import HeadRequests
from studio.api.health import MetricsMiddleware, add_health_routes
from studio.api.rater_page import add_rater_routes
from studio.auth.gateway import Gateway
from studio.auth.proxies import TrustedProxies, networks
from studio.components.account_pages import missing_page
from studio.components.theme import style_link
from studio.i18n.translate import LanguageMiddleware, tr
from studio.services.service import Service

# Nothing may be loaded from or sent to another host. Gradio compiles its HTML templates, hence 'unsafe-eval'.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'; object-src 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# How long requests may continue after the studio was asked to shut down; an idle connection would never end.
ENDING_SECONDS = 10
# Gradio's scripts and styles, whose names contain a hash of their content.
HASHED = re.compile(r"/assets/[^/]+\.(?:js|css)")


class ResponseHeaders:
    """Adds those of the headers above that a response does not set, and a cache header for files that never change.

    Plain ASGI, so that streams pass through unchanged.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({name: value for name, value in HEADERS.items() if name not in headers})
                if message["status"] == 200 and HASHED.fullmatch(scope["path"]):
                    headers["Cache-Control"] = "public, max-age=31536000, immutable"
            await send(message)

        await self.app(scope, receive, answer if scope["type"] == "http" else send)


class MissingPages:
    """Shows an error page if a browser requests a missing address or project. Plain ASGI."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        project = Request(scope).query_params.get("project", "")
        if project.isdecimal() and await run_in_threadpool(self.service.project, project) is None:
            text = tr("There is no project {number}: it may have been deleted.", number=project[:9])
            await missing_page(tr("No such project"), text)(scope, receive, send)
            return
        missing = False

        async def answer(message: Message) -> None:
            nonlocal missing
            if message["type"] == "http.response.start" and message["status"] == 404:
                missing = True
                text = tr("There is no page at this address.")
                await missing_page(tr("No such page"), text)(scope, receive, send)
            elif not missing:
                await send(message)

        await self.app(scope, receive, answer)


def create_app(settings: Settings) -> FastAPI:
    """The server's application: the studio's pages, REST API and downloads behind the gateway and the security headers."""
    # Imported here because it loads Gradio, which is slow.
    from studio.pages.mount import mount_pages  # isort: split

    from studio.components.gradio_sessions import EndedStreams

    service = Service(settings)
    with act_as(THIS_MACHINE):
        finish_deletions(settings, service.store)
    share_of(settings, service.store).start()
    # Uploads are private: they go to the home folder, not to a folder shared by all users of the machine.
    os.environ.setdefault("GRADIO_TEMP_DIR", str(settings.home_dir / "uploads"))
    app = FastAPI(title="Tailor MT", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(OwnMethods, routes=app.routes)
    app.add_middleware(EndedStreams)
    app.add_middleware(MissingPages, service=service)
    # Inside the Dispatcher, since the REST API always answers in English.
    app.add_middleware(LanguageMiddleware, head=style_link())
    app.add_middleware(HeadRequests)
    app.add_middleware(Dispatcher, api=create_api(service))  # the REST API, before the pages
    app.add_middleware(
        Gateway,
        settings=service.settings,
        store=service.store,
        uploads=Path(os.environ["GRADIO_TEMP_DIR"]),
        is_api=is_api,
        error_response=shaped,
    )
    app.add_middleware(ResponseHeaders)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(TrustedProxies, trusted=settings.trusted_proxies)
    add_health_routes(app, service)
    add_door_routes(app, service)

    add_download_routes(app, service)
    add_rater_routes(app, service)
    mount_pages(app, service)
    app.state.models = service.models
    return app


def launch(settings: Settings, open_browser: bool = False) -> None:
    """Serve the studio until interrupted and start a local worker, if enabled. Listens on 127.0.0.1 unless set otherwise."""
    import uvicorn

    from engine.serving.resident import listen

    check_door(settings)
    networks(settings.trusted_proxies)  # an invalid setting is reported before anything starts
    set_up_logs(settings.log_format, logging.INFO if settings.log_format == "json" else logging.WARNING)
    sys.setswitchinterval(0.001)  # so that scanning a large text delays translations less
    door = bound_socket(settings.host, settings.port)
    app = create_app(settings)
    if settings.local_worker:
        start_background_worker(settings)  # it outlives the studio, so that closing the studio does not end a training
    if not settings.replicas:  # with replicas, no base is loaded here
        listen(app.state.models)
    address = f"http://{settings.host}:{settings.port}"
    print(f"Tailor MT is at {address} (stop with Ctrl+C)", flush=True)
    if app.state.first_code:
        print(f"Make the first account at {address}/first-account?code={app.state.first_code}", flush=True)
    if open_browser:
        import threading
        import webbrowser

        threading.Timer(1.0, webbrowser.open, [address]).start()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.end_streams()  # uvicorn waits for all streams, and every open page keeps one
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app, log_level="warning", log_config=None, proxy_headers=False, timeout_graceful_shutdown=ENDING_SECONDS
    )
    Server(config).run(sockets=[door])


def bound_socket(host: str, port: int) -> socket.socket:
    """Bind the server's socket before anything is started. Raises InputError if that fails."""
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        return door
    except OSError as error:
        door.close()
        raise InputError(
            "Port {port} of {host} cannot be used ({reason}). Stop the program that uses it, or choose another with --port.",
            port=port, host=host, reason=error.strerror or str(error),
        ) from None  # fmt: skip
