"""The connection to a studio: requests, their errors as sentences, paged lists, files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from engine.errors import InputError, TailorError
from engine.files import replacing

if TYPE_CHECKING:
    import httpx

__all__ = ["CONNECTING", "ENDED", "ClientError", "Connection", "Row", "refusal"]

Row = dict[str, Any]
PAGE = 500
ENDED = ("succeeded", "failed", "cancelled", "interrupted")
CONNECTING = 10.0  # seconds
WAITING = 600.0  # seconds for an answer: the first translation loads the base, others may come before


class ClientError(InputError):
    """The studio refused, in its own sentence. `status` is HTTP's, `code` the studio's (`not_found`, `conflict`, …)."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Connection:
    """A studio at an address, with the token of who asks."""

    def __init__(self, url: str = "http://127.0.0.1:7860", token: str = "", *, timeout: float = WAITING) -> None:
        import httpx

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        try:
            self._http = httpx.Client(
                base_url=f"{self.url}/api/v1", headers=headers, timeout=httpx.Timeout(timeout, connect=CONNECTING)
            )
        except (httpx.InvalidURL, UnicodeEncodeError):
            raise InputError(f"{url} is no address of a studio. Write it as http://127.0.0.1:7860.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def _save(self, address: str, path: str | Path, what: str, **params: Any) -> Path:
        path = Path(path)
        with self._errors(), self._http.stream("GET", address, params=params) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise refusal(answer)
            with replacing(path, what) as temporary, temporary.open("wb") as out:
                for block in answer.iter_bytes(1 << 20):
                    out.write(block)
        return path

    def _all(self, path: str, params: Mapping[str, Any] | None = None) -> Iterator[Row]:
        """All items of a paged list."""
        offset = 0
        while True:
            part = self._ask("GET", path, params={**(params or {}), "offset": offset, "limit": PAGE})
            yield from part["items"]
            offset += len(part["items"])
            if not part["items"] or offset >= part["total"]:
                return

    def _ask(self, verb: str, path: str, **given: Any) -> Any:
        answer = self._send(verb, path, **given)
        return answer.json() if answer.content else None

    def _send(self, verb: str, path: str, **given: Any) -> httpx.Response:
        with self._errors():
            answer = self._http.request(verb, quote(path), **given)
        if answer.status_code >= 400:
            raise refusal(answer)
        return answer

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.TimeoutException:
            raise TailorError(
                f"The studio at {self.url} did not answer in time. It may be loading a base; try again."
            ) from None
        except httpx.HTTPError as error:
            raise TailorError(
                f"The studio at {self.url} cannot be reached ({error}). Start it with `tailormt studio`, or give its address."
            ) from None


def refusal(answer: httpx.Response) -> ClientError:
    """The studio's sentence; for what is no studio, what it is."""
    try:
        error = answer.json()["error"]
        return ClientError(str(error["message"]), answer.status_code, str(error["code"]))
    except (ValueError, KeyError, TypeError):
        return ClientError(f"{answer.url} answered {answer.status_code}; is a studio there?", answer.status_code)
