"""Uploads: limited in size while they stream, stored under safe names in a temporary folder, and deleted afterwards."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.core.numerals import whole_number
from engine.core.settings import Settings
from engine.errors import TailorError, storage_errors
from studio.api.errors import Problem, shaped
from studio.api.permissions import check
from studio.auth.gateway import read_body
from studio.auth.identity import headers_of
from studio.auth.wellformed import FORMS, body_refusal, kind_of

LARGEST_BODY = 8 << 20  # bytes of a request without files
CHUNK = 1 << 20
UPLOADS = re.compile(
    r"/api/v1/projects/\d+/(?:samples|tests|terms/file|plugins(?:/check)?|(?P<translate>documents|comparisons/files))$"
    r"|(?:/cat/[^/]+(?:/[^/]+)?)?(?P<deepl>/v2/document)$"
)
SLACK = 1 << 20  # bytes for the headers of the parts in a multipart body


class BoundedBody:
    """Refuses requests whose body is too large, whatever Content-Length declares, or ambiguous. Plain ASGI."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.upload = settings.max_upload_mib << 20

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        brings_files = UPLOADS.match(scope["path"])
        limit = self.upload + SLACK if brings_files else LARGEST_BODY
        size = f"{limit >> 20} MiB" if not brings_files else f"{self.upload >> 20} MiB"
        message = f"The request is larger than {size}. Send it in parts."
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length and whole_number(length.decode("latin-1"), high=limit) is None:
            # The connection is closed, since the body is not read.
            await shaped(scope["path"], 413, "too_large", message, {"Connection": "close"})(scope, receive, send)
            return
        if brings_files:
            # FastAPI reads the body before the handler checks the caller; without this check, anybody could fill the disk.
            request = Request(scope)
            needed = "translate" if any(brings_files.groupdict().values()) else "write"
            try:
                await run_in_threadpool(check, request, needed)
            except Problem as error:
                answer = shaped(scope["path"], error.status_code, error.code, str(error.detail), error.headers)
                await answer(scope, receive, send)
                return
        received = 0

        async def counted() -> Message:
            nonlocal received
            part = await receive()
            received += len(part.get("body", b""))
            if received > limit:
                raise Problem(413, message, headers={"Connection": "close"})
            return part

        passed: Receive = counted
        headers = headers_of(scope)
        if kind_of(headers) != FORMS[1]:
            try:
                body, passed = await read_body(counted)
            except Problem as error:
                await shaped(scope["path"], 413, "too_large", message, error.headers)(scope, receive, send)
                return
            why = await run_in_threadpool(body_refusal, headers, body) if body else None
            if why is not None:
                await shaped(scope["path"], *why)(scope, receive, send)
                return
        await self.app(scope, passed, send)


def safe_name(name: str) -> str:
    """The last part of a path as a safe file name of at most 200 bytes. Raises Problem 422 if nothing is left."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    clean = "".join(c for c in last if c.isprintable()).strip().lstrip(".").strip()
    stem, dot, ending = clean.rpartition(".")
    while len(clean.encode()) > 200:
        stem = stem[:-1] if dot else clean[:-1]
        clean = f"{stem}{dot}{ending}" if dot else stem
        if not stem:
            break
    if not clean or len(clean.encode()) > 200:
        raise Problem(422, "A file needs a name, with an ending that tells its kind.", code="invalid")
    return clean


@contextlib.contextmanager
def stored_uploads(settings: Settings, files: Sequence[UploadFile]) -> Iterator[list[Path]]:
    """Store the uploaded files in a folder that is deleted after the block. Raises Problem 413, 422, StorageError."""
    root = settings.home_dir / "uploads"
    with storage_errors("the upload", root):
        root.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="api-", dir=root))
    try:
        paths: list[Path] = []
        for file in files:
            path = folder / safe_name(file.filename or "")
            if path.exists():
                raise Problem(422, f"Two of the files are called {path.name}.", code="invalid")
            with storage_errors("the upload", path), path.open("wb") as out:
                while block := file.file.read(CHUNK):
                    out.write(block)
                    if out.tell() > settings.max_upload_mib << 20:
                        raise Problem(413, f"{path.name} is larger than {settings.max_upload_mib} MiB. Split it into parts.")
            paths.append(path)
        yield paths
    except TailorError as error:
        # Remote programs must not see where uploads are stored.
        raise type(error)(error.message.naming(f"{folder}/", "")) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sent_once(settings: Settings, ending: str, make: Callable[[Path], object], **answer: Any) -> FileResponse:
    """A response with a temporary file written by `make`, deleted once sent. Raises StorageError and the errors of `make`."""
    folder = settings.home_dir / "uploads"
    with storage_errors("the copy", folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="copy-", suffix=ending, dir=folder, delete=False) as file:
            path = Path(file.name)
    try:
        make(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(path, background=BackgroundTask(path.unlink, missing_ok=True), **answer)
