"""The client: one method a thing that the studio does. What comes back are the mappings that docs/api.md describes."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.client.connection import CONNECTING, ENDED, ClientError, Connection, Row, refusal
from engine.errors import InputError

__all__ = ["Client", "ClientError"]


class Client(Connection):
    """A studio at an address; `token` is needed where others than its machine's own users can reach it.

    Every method raises ClientError where the studio refuses, and TailorError where it cannot be reached.
    """

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
                raise refusal(answer)
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

    def estimate(self, project: int, method: str = "memory_adapter", budget: str = "balanced", **wish: Any) -> Row:
        """What a training would take on the studio's machine; `method_options`, `training_options`, `base` as in docs/api.md."""
        return self._ask(
            "POST", f"/projects/{project}/runs/estimate", json={"method": method, "budget": budget, **wish}
        )

    def look(self, project: int) -> Row:
        """The first look after an upload: a few sentences with the samples at hand."""
        return self._ask("GET", f"/projects/{project}/look")

    # -- phrases

    def exclude_phrases(self, project: int, phrases: Sequence[str], *, sentences: bool = False) -> Row:
        """Leave phrases out of the next training, on a wish with the sentences that hold them."""
        wish = {"action": "exclude", "phrases": list(phrases), "sentences": sentences}
        return self._ask("POST", f"/projects/{project}/phrases/exclusions", json=wish)

    def restore_phrases(self, project: int, phrases: Sequence[str]) -> Row:
        """Take phrases back in."""
        wish = {"action": "restore", "phrases": list(phrases)}
        return self._ask("POST", f"/projects/{project}/phrases/exclusions", json=wish)

    def typical_phrases(self, project: int, **filters: Any) -> Iterator[Row]:
        """Phrases with their keyness against general text, the most typical first; the filter is `search`."""
        return self._all(f"/projects/{project}/phrases/typical", filters)

    # -- plugins

    def plugins(self, project: int | None = None) -> list[Row]:
        """Plugins of one project or of all, newest first."""
        return list(self._all("/plugins", {"project": project} if project else {}))

    def plugin_card(self, number: int) -> Row:
        """What the bundle says of itself."""
        return self._ask("GET", f"/plugins/{number}/card")

    def download_plugin(self, number: int, path: str | Path, *, with_phrases: bool = True) -> Path:
        """Write a plugin's bundle to a file. Raises StorageError."""
        return self._save(f"/plugins/{number}/download", path, "the plugin", with_phrases=with_phrases)

    def import_plugin(self, project: int, path: str | Path) -> Row:
        """Send a bundle; it is checked and taken into the project."""
        with _opened(path) as file:
            return self._ask("POST", f"/projects/{project}/plugins", files={"file": (Path(path).name, file)})

    def change_plugin(self, number: int, *, name: str | None = None, tags: Sequence[str] | None = None) -> Row:
        """Another name or other tags, for all versions of a plugin."""
        wish = {"name": name, "tags": None if tags is None else list(tags)}
        return self._ask(
            "PATCH", f"/plugins/{number}", json={key: value for key, value in wish.items() if value is not None}
        )

    def blend(self, project: int, name: str, weights: Mapping[int, float]) -> Row:
        """One plugin of several, {number: weight}."""
        parts = [{"plugin": number, "weight": float(weight)} for number, weight in weights.items()]
        return self._ask("POST", f"/projects/{project}/blends", json={"name": name, "parts": parts})

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

    def compare_files(
        self, project: int, paths: Sequence[str | Path], systems: Sequence[tuple[str, float]] = (), title: str = ""
    ) -> Row:
        """Queue a comparison of a file's sentences, or of two texts, sentences and references. `systems` are plugins with
        their strengths, (number or name, strength); none: the project's default. Returns `comparison`, `job` and `notes`.
        """
        wish = [{"plugin": str(plugin), "strength": float(strength)} for plugin, strength in systems]
        with contextlib.ExitStack() as stack:
            files = [("files", (Path(path).name, stack.enter_context(_opened(path)))) for path in paths]
            data = {"systems": json.dumps(wish) if wish else "", "title": title}
            return self._ask("POST", f"/projects/{project}/comparisons/files", files=files, data=data)

    def lines(self, comparison: int, order: str = "place") -> Iterator[Row]:
        """The sentences of a comparison by all its systems; `order` as in docs/api.md."""
        return self._all(f"/comparisons/{comparison}/lines", {"order": order})

    def figures(self, comparison: int) -> list[Row]:
        """What was measured of a comparison."""
        return self._ask("GET", f"/comparisons/{comparison}/figures")

    def export_comparison(self, number: int, path: str | Path, format: str = "") -> Path:
        """Write a comparison to a file, in the format of its ending: tsv, xlsx, tmx, xlf, html. Raises StorageError."""
        known = {".xlf": "xliff"}
        format = format or known.get(Path(path).suffix.lower(), Path(path).suffix.lower().lstrip("."))
        return self._save(f"/comparisons/{number}/export", path, "the comparison", format=format)

    def comparisons(self, project: int) -> list[Row]:
        return list(self._all(f"/projects/{project}/comparisons"))

    def comparison(self, number: int) -> Row:
        return self._ask("GET", f"/comparisons/{number}")

    def proportions(self, project: int, sentences: Sequence[str], **wish: Any) -> Row:
        """What each word shares with each domain; `side` and `plugin` as in docs/api.md."""
        return self._ask("POST", f"/projects/{project}/proportions", json={"sentences": list(sentences), **wish})

    # -- documents

    def documents(self, project: int) -> list[Row]:
        """A project's documents, newest first."""
        return list(self._all(f"/projects/{project}/documents"))

    def send_document(
        self, project: int, path: str | Path, plugin: str | int = "", strength: float = 1.0, **options: Any
    ) -> Row:
        """Send a document to be translated; its `job` is what to wait for. `options` as /options/documents describes them."""
        data = {"plugin": str(plugin), "strength": str(strength), "options": json.dumps(options) if options else ""}
        with _opened(path) as file:
            return self._ask(
                "POST", f"/projects/{project}/documents", files={"file": (Path(path).name, file)}, data=data
            )

    def download_document(self, number: int, path: str | Path) -> Path:
        """Write a translated document to a file. Raises StorageError."""
        return self._save(f"/documents/{number}/download", path, "the translation")

    def delete_document(self, number: int) -> None:
        """Remove a document and its translation."""
        self._ask("DELETE", f"/documents/{number}")

    # -- ratings

    def ratings(self, project: int) -> list[Row]:
        """A project's rating rounds, newest first."""
        return list(self._all(f"/projects/{project}/ratings"))

    def start_rating(
        self, project: int, comparison: int, one: str, two: str, raters: Sequence[str], **wish: Any
    ) -> Row:
        """A blind round over a comparison; each rater has an `address`. `title`, `sentences`, `examples` as in docs/api.md."""
        wish |= {"comparison": comparison, "one": one, "two": two, "raters": list(raters)}
        return self._ask("POST", f"/projects/{project}/ratings", json=wish)

    def rating(self, number: int) -> Row:
        """One round with its raters and how far they are."""
        return self._ask("GET", f"/ratings/{number}")

    def rating_summary(self, number: int) -> Row:
        """The table of a round, as data and as text."""
        return self._ask("GET", f"/ratings/{number}/summary")

    def export_rating(self, number: int, path: str | Path) -> Path:
        """Write a round to a .csv or .json file. Raises StorageError."""
        return self._save(f"/ratings/{number}/export", path, "the rating", format=Path(path).suffix.lower().lstrip("."))


def _opened(path: str | Path) -> Any:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
