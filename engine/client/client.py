"""The client: one method a thing that the studio does. What comes back are the mappings that docs/api.md describes."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from engine.errors import InputError, TailorError
from engine.files import replacing

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "ClientError"]

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


class Client:
    """A studio at an address; `token` is needed where others than its machine's own users can reach it.

    Every method raises ClientError where the studio refuses, and TailorError where it cannot be reached.
    """

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

    # -- the studio

    def status(self) -> Row:
        """Version, device, work in the queue, and what this caller may do."""
        return self._ask("GET", "/status")

    def methods(self) -> list[Row]:
        """Methods of customization with their settings."""
        return self._ask("GET", "/methods")

    def bases(self) -> list[Row]:
        """Base models of the studio's machine."""
        return self._ask("GET", "/bases")

    def languages(self) -> list[Row]:
        """Languages that can be translated from, each with its targets."""
        return self._ask("GET", "/languages")

    # -- projects and samples

    def projects(self) -> list[Row]:
        """All projects, newest first."""
        return list(self._all("/projects"))

    def project(self, number: int) -> Row:
        return self._ask("GET", f"/projects/{number}")

    def create_project(self, name: str, source: str, target: str, base: str = "") -> Row:
        """A new project; without a base the first that knows the languages."""
        wish = {"name": name, "source": source, "target": target} | ({"base": base} if base else {})
        return self._ask("POST", "/projects", json=wish)

    def delete_project(self, number: int, *, files: bool = False) -> None:
        """Remove a project; with `files` its folder too."""
        self._ask("DELETE", f"/projects/{number}", params={"files": files})

    def upload(self, project: int, paths: Sequence[str | Path], domains: Mapping[str, str] | None = None) -> Row:
        """Send files with sentences; returns the job that reads them. `domains` are labels by file name."""
        with contextlib.ExitStack() as stack:
            files = [("files", (Path(path).name, stack.enter_context(_opened(path)))) for path in paths]
            data = {"domains": json.dumps(dict(domains))} if domains else {}
            return self._ask("POST", f"/projects/{project}/samples", files=files, data=data)

    def samples(self, project: int) -> Row:
        """Files, import report, and the job that read them."""
        return self._ask("GET", f"/projects/{project}/samples")

    def segments(self, project: int, **filters: Any) -> Iterator[Row]:
        """The kept sentences; filters are `search`, `file`, `domain`."""
        return self._all(f"/projects/{project}/samples/segments", filters)

    def phrases(self, project: int, **filters: Any) -> Iterator[Row]:
        """The phrases; filters are `search`, `min_length`, `max_length`, `label`, `layer`, `order`."""
        return self._all(f"/projects/{project}/phrases", filters)

    # -- jobs

    def jobs(self, **filters: Any) -> list[Row]:
        """Jobs, newest first; filters are `project`, `state`, `kind`."""
        return list(self._all("/jobs", filters))

    def job(self, number: int) -> Row:
        return self._ask("GET", f"/jobs/{number}")

    def events(self, number: int) -> Iterator[Row]:
        """The job each time that it changed, until it has ended."""
        import httpx

        path = f"/jobs/{number}/events"
        with self._errors(), self._http.stream("GET", path, timeout=httpx.Timeout(60.0, connect=CONNECTING)) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise _refusal(answer)
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: ") and kind == "job":
                    yield json.loads(line.removeprefix("data: "))

    def wait(self, job: Row | int, said: Callable[[Row], Any] | None = None) -> Row:
        """Wait for the end of a job; `said` is called each time that it changed. Raises ClientError where it failed."""
        number = job if isinstance(job, int) else int(job["id"])
        while True:
            found = self.job(number)
            for found in self.events(number):
                if said is not None:
                    said(found)
            if found["state"] in ENDED:
                break
            time.sleep(1.0)
        if found["state"] != "succeeded":
            raise ClientError(found["error"] or f"Job {number} was {found['state']}.", 409, str(found["state"]))
        return found

    def cancel(self, number: int) -> Row:
        """Ask a job to stop; what is finished is kept."""
        return self._ask("POST", f"/jobs/{number}/cancel")

    def resume(self, number: int) -> Row:
        """Queue an interrupted, failed or cancelled job again."""
        return self._ask("POST", f"/jobs/{number}/resume")

    def log(self, number: int, characters: int = 20_000) -> str:
        """The end of a job's log."""
        return str(self._send("GET", f"/jobs/{number}/log", params={"characters": characters}).text)

    def start_run(
        self,
        project: int,
        method: str = "memory_adapter",
        budget: str = "balanced",
        method_options: Mapping[str, Any] | None = None,
        training_options: Mapping[str, Any] | None = None,
    ) -> Row:
        """Start a training on a project's samples; returns its job, whose result names the plugin."""
        wish = {"method": method, "budget": budget, "method_options": dict(method_options or {}),
                "training_options": dict(training_options or {})}  # fmt: skip
        return self._ask("POST", f"/projects/{project}/runs", json=wish)

    # -- plugins

    def plugins(self, project: int | None = None) -> list[Row]:
        """Plugins of one project or of all, newest first."""
        return list(self._all("/plugins", {"project": project} if project else {}))

    def plugin_card(self, number: int) -> Row:
        """What the bundle says of itself."""
        return self._ask("GET", f"/plugins/{number}/card")

    def download_plugin(self, number: int, path: str | Path, *, with_phrases: bool = True) -> Path:
        """Write a plugin's bundle to a file. Raises StorageError."""
        path = Path(path)
        params = {"with_phrases": with_phrases}
        with self._errors(), self._http.stream("GET", f"/plugins/{number}/download", params=params) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise _refusal(answer)
            with replacing(path, "the plugin") as temporary, temporary.open("wb") as out:
                for block in answer.iter_bytes(1 << 20):
                    out.write(block)
        return path

    def import_plugin(self, project: int, path: str | Path) -> Row:
        """Send a bundle; it is checked and taken into the project."""
        with _opened(path) as file:
            return self._ask("POST", f"/projects/{project}/plugins", files={"file": (Path(path).name, file)})

    def set_default(self, project: int, plugin: int | None) -> Row:
        """Which plugin a project uses where none is named; None: the base alone."""
        return self._ask("PUT", f"/projects/{project}/default-plugin", json={"plugin": plugin})

    def delete_plugin(self, number: int, *, file: bool = False) -> None:
        """Take a plugin out of its project; with `file` off the disk too."""
        self._ask("DELETE", f"/plugins/{number}", params={"file": file})

    # -- translating

    def translate(self, texts: Sequence[str], **wish: Any) -> list[str]:
        """Translate texts. `project`, `plugin`, `source`, `target`, `strength`, `format` say how, as in docs/api.md."""
        return [str(one["text"]) for one in self.translate_fully(texts, **wish)["translations"]]

    def translate_fully(self, texts: Sequence[str], **wish: Any) -> Row:
        """The same with all that the studio tells: languages, base, plugin, and with `reads=True` what was read."""
        given = {key: str(value) if key in ("project", "plugin") else value for key, value in wish.items()}
        known = {key: value for key, value in given.items() if wish[key] is not None}
        return self._ask("POST", "/translate", json={"texts": list(texts), **known})

    def compare(self, project: int, texts: Sequence[str], **wish: Any) -> Row:
        """Translate with the base and with a plugin, and keep both side by side in the project."""
        known = {key: str(value) if key == "plugin" else value for key, value in wish.items() if value is not None}
        return self._ask("POST", f"/projects/{project}/comparisons", json={"texts": list(texts), **known})

    def comparisons(self, project: int) -> list[Row]:
        return list(self._all(f"/projects/{project}/comparisons"))

    def comparison(self, number: int) -> Row:
        return self._ask("GET", f"/comparisons/{number}")

    def proportions(self, project: int, sentences: Sequence[str], **wish: Any) -> Row:
        """What each word shares with each domain; `side` and `plugin` as in docs/api.md."""
        return self._ask("POST", f"/projects/{project}/proportions", json={"sentences": list(sentences), **wish})

    # -- asking

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
            raise _refusal(answer)
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


def _opened(path: str | Path) -> Any:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _refusal(answer: httpx.Response) -> ClientError:
    """The studio's sentence; for what is no studio, what it is."""
    try:
        error = answer.json()["error"]
        return ClientError(str(error["message"]), answer.status_code, str(error["code"]))
    except (ValueError, KeyError, TypeError):
        return ClientError(f"{answer.url} answered {answer.status_code}; is a studio there?", answer.status_code)
