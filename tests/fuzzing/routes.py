"""The REST interface as a target: an input is one request as JSON, sent to an application with a home of its own."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ROUTES"]

EVERY = 400  # requests between two fresh homes
HERE = {"base_url": "http://127.0.0.1:7860", "client": ("127.0.0.1", 5000)}
SKIP = ("/events",)  # answers that only end with the job


@dataclass
class App:
    """A client of an application whose home is emptied now and then, since requests make rows and files."""

    home: Path | None = None
    client: Any = None
    asked: int = 0

    def of(self, folder: Path) -> Any:
        from starlette.testclient import TestClient

        from engine.core.settings import Settings
        from studio.api import create_api
        from studio.services.service import Service

        home = folder.parent / "rest-home"
        self.asked += 1
        if self.client is None or self.home != home or self.asked % EVERY == 0:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            service = Service(Settings(home=str(home), device="cpu", max_upload_mib=1, server_paths="off"))
            project = service.store.projects.create("Rain", "en", "zh", str(home / "no-base"))
            service.store.jobs.cancel(service.store.jobs.enqueue("prepare", {}, project_id=project.id).id)
            service.store.comparisons.create(project.id, "x", [{"source": "I.", "vanilla": "我。", "customized": None}])
            self.client = TestClient(create_api(service), raise_server_exceptions=False, **HERE)  # type: ignore[arg-type]
            self.home = home
        return self.client


APP = App()


def _send(data: bytes, folder: Path) -> object:
    try:
        wish = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(wish, dict):
        return "no request"
    method, path = str(wish.get("method", "GET")), str(wish.get("path", "/"))
    if (
        method not in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
        or not path.startswith("/")
        or any(part in path for part in SKIP)
    ):
        return "not sent"
    options: dict[str, Any] = {}
    if isinstance(wish.get("query"), dict):
        options["params"] = {str(key): str(value)[:2000] for key, value in wish["query"].items()}
    if "json" in wish:
        options["content"] = json.dumps(wish["json"]).encode()
        options["headers"] = {"Content-Type": "application/json"}
    elif isinstance(wish.get("form"), dict):
        options["data"] = {str(key): str(value) for key, value in wish["form"].items()}
    elif "raw" in wish:
        options["content"] = str(wish["raw"]).encode("utf-8", "surrogatepass")
        options["headers"] = {"Content-Type": "application/json"}
    if isinstance(wish.get("file"), str):
        options.setdefault("data", {})
        options["files"] = {"file": (str(wish.get("filename", "a.txt"))[:300], wish["file"].encode("utf-8", "surrogatepass"))}
    try:
        client = APP.of(folder)
        request = client.build_request(method, path.encode("utf-8", "replace").decode()[:2000], **options)
    except (UnicodeError, ValueError, TypeError) as error:  # what no HTTP client could send
        return f"not sent {type(error).__name__}"
    except Exception as error:
        if type(error).__module__.startswith("httpx"):
            return f"not sent {type(error).__name__}"
        raise
    answer = client.send(request)
    assert answer.status_code != 500, f"{method} {path}: {answer.text[:600]}"
    assert "Traceback" not in answer.text
    if answer.status_code >= 400 and method not in ("HEAD", "OPTIONS"):
        answer.json()
    return f"{method} {answer.status_code} {answer.headers.get('content-type', '')}"


@cache
def _schema() -> dict[str, Any]:
    from starlette.testclient import TestClient

    from engine.core.settings import Settings
    from studio.api import create_api
    from studio.services.service import Service

    with tempfile.TemporaryDirectory() as name:
        client = TestClient(create_api(Service(Settings(home=name, device="cpu"))), **HERE)  # type: ignore[arg-type]
        return dict(client.get("/api/v1/openapi.json").json())


def _example(schema: dict[str, Any], parts: dict[str, Any], depth: int = 0) -> Any:
    """A value that the schema allows."""
    if depth > 5:
        return None
    if "$ref" in schema:
        return _example(parts[schema["$ref"].rsplit("/", 1)[1]], parts, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _example(schema[key][0], parts, depth + 1)
    if "enum" in schema:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type")
    if kind == "object":
        return {name: _example(inner, parts, depth + 1) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_example(schema.get("items", {}), parts, depth + 1)]
    return {"integer": 1, "number": 0.5, "boolean": True, "string": "The rain stopped."}.get(str(kind))


@dataclass(frozen=True)
class Seeds(Sequence[bytes]):
    """One request an operation, made from the application's own description when first needed."""

    made: list[bytes] = field(default_factory=list)

    def _all(self) -> list[bytes]:
        if not self.made:
            schema = _schema()
            parts = schema.get("components", {}).get("schemas", {})
            for path, methods in schema["paths"].items():
                for method, operation in methods.items():
                    wish: dict[str, Any] = {"method": method.upper(), "path": path, "query": {}}
                    for parameter in operation.get("parameters", []):
                        value = _example(parameter.get("schema", {}), parts)
                        if parameter["in"] == "path":
                            wish["path"] = wish["path"].replace("{" + parameter["name"] + "}", str(1 if value is None else value))
                        elif parameter["in"] == "query":
                            wish["query"][parameter["name"]] = value
                    for content, body in operation.get("requestBody", {}).get("content", {}).items():
                        value = _example(body.get("schema", {}), parts)
                        if "json" in content:
                            wish["json"] = value
                        elif "multipart" in content:
                            wish |= {"form": value, "file": "The rain stopped.\n", "filename": "a.txt"}
                        else:
                            wish.setdefault("form", value)
                    self.made.append(json.dumps(wish).encode())
            for more in ("/languages", "/translate", "/v2/translate", "/v2/usage", "/cat/1/translate", "/v3/glossaries", "/health"):
                words = {"q": "Rain.", "text": ["Rain."], "source": "en", "target": "zh"}
                body = words | {"source_lang": "EN", "target_lang": "ZH"}
                self.made.append(json.dumps({"method": "POST", "path": more, "json": body}).encode())
        return self.made

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())


def _target() -> Any:
    from tests.fuzzing.targets import Target

    return Target("rest", _send, "json", Seeds(), heavy=True)


ROUTES = _target()
