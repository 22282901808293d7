"""Log lines as plain text or one JSON object per line, with the request and the job that they belong to.

Secrets (tokens, passwords in addresses, sessions, rating links) are removed from every line, whatever its origin.
"""

from __future__ import annotations

import datetime
import json
import logging
import re
import sys
from contextvars import ContextVar
from typing import IO

REQUEST: ContextVar[str] = ContextVar("number of the request at hand", default="")
JOB: list[str] = [""]  # the job that this process runs, with all its threads

HIDDEN = "[hidden]"
SECRETS = (
    re.compile(r"\b(tmt_)[\w-]{6,}"),
    re.compile(r"(?i)\b(bearer |deepl-auth-key )[^\s,;\"']+"),
    re.compile(r"(?i)(tailormt_session=)[^\s;,\"']+"),
    re.compile(
        r"(?i)((?:\b|_)(?:api_key|auth_key|password|passwd|secret|token|secret_access_key)[\"']?\s*[=:]\s*[\"']?)[^\s&,;\"']+"
    ),
    re.compile(r"(/rating/)[\w-]{16,}"),
    re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s:/@]*:)[^\s@/]+(?=@)"),
)


def redacted(text: str) -> str:
    """The text with secrets replaced."""
    for secret in SECRETS:
        text = secret.sub(rf"\1{HIDDEN}", text)
    return text


class TextFormatter(logging.Formatter):
    """Plain text, with the request and the job if any."""

    def format(self, record: logging.LogRecord) -> str:
        context = "".join(f" {name} {value}" for name, value in _about().items())
        moment = self.formatTime(record)
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return redacted(f"{moment} {record.levelname} {record.name}{context}: {record.getMessage()}{trace}")


class JsonFormatter(TextFormatter):
    """One object per line: time (UTC, ISO 8601), level, logger, message, request, job, exception, and the fields in `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": redacted(record.getMessage()), **_about()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _about() -> dict[str, str]:
    return {name: value for name, value in (("request", REQUEST.get()), ("job", JOB[0])) if value}


def client_stayed(record: logging.LogRecord) -> bool:
    """False for the server's log record of a cancelled request, which is normal when a page is left.

    Gradio's event streams end so. Other errors, and cancellations elsewhere, are logged.
    """
    if not record.exc_info or record.name != "uvicorn.error":
        return True
    import asyncio  # slow to import; a record of this kind has loaded it already

    error = record.exc_info[1]
    while error is not None:
        if isinstance(error, asyncio.CancelledError):
            return False
        error = error.__cause__
    return True


def set_up_logs(format: str, level: int = logging.INFO, *, job: int | None = None, stream: IO[str] | None = None) -> None:
    """Send all log records of this process to stderr (or `stream`) in that format; `job` is the job that it runs."""
    JOB[0] = "" if job is None else str(job)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    handler.addFilter(client_stayed)
    logging.basicConfig(level=level, handlers=[handler], force=True)
