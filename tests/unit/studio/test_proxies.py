"""What a proxy may say of a client, and who may make the first account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from engine.core.settings import Settings
from engine.errors import OptionError
from engine.store import Store
from studio.api.account_routes import add_door_routes
from studio.api.dispatch import is_api
from studio.api.errors import shaped
from studio.api.health import add_health_routes
from studio.auth.gateway import Gateway
from studio.auth.identity import from_here, headers_of
from studio.auth.proxies import TrustedProxies, networks
from studio.services.service import Service
from tests.unit.studio.test_gateway import HOST, PASSWORD, door

STRANGERS: tuple[dict[str, str], ...] = (
    {}, {"X-Forwarded-Proto": "https"}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}, {"Via": "1.1 proxy"},
)  # fmt: skip


@pytest.mark.parametrize("headers", STRANGERS)
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.9"])
def test_the_first_account_needs_the_code_of_the_console(tmp_path: Path, headers: dict[str, str], address: str) -> None:
    client = door(tmp_path, address=address)
    code = client.app.state.first_code  # type: ignore[attr-defined]
    data = {"name": "Ada", "password": PASSWORD}
    assert "tailormt user add" in client.get("/sign-in", headers=headers).text
    for wrong in ("", "x", code[:-1], "\udc80", "²"):
        query = {"code": wrong.encode("utf-8", "replace").decode()}
        assert client.get("/first-account", params=query, headers=headers).status_code == 404
        assert client.post("/first-account", data={**data, **query}, headers=headers).status_code == 404
    assert code in client.get("/first-account", params={"code": code}, headers=headers).text
    with_code = {**data, "code": code}
    assert client.post("/first-account", data={**with_code, "password": "short"}, headers=headers).status_code == 400
    assert client.post("/first-account", data=with_code, headers=headers).status_code == 303
    assert client.post("/first-account", data={**with_code, "name": "Eve"}, headers=headers).status_code == 404
    assert door(tmp_path).app.state.first_code == ""  # type: ignore[attr-defined]


def test_an_account_made_on_the_command_line_ends_the_code(tmp_path: Path) -> None:
    client = door(tmp_path)
    code = client.app.state.first_code  # type: ignore[attr-defined]
    Store(f"sqlite:///{tmp_path / 'tailor.db'}").accounts.create("Ada", PASSWORD, "admin")
    data = {"name": "Eve", "password": PASSWORD, "code": code}
    assert client.post("/first-account", data=data).status_code == 404


def seen(trusted: tuple[str, ...], peer: str, **headers: str) -> tuple[str, str, bool]:
    """The client's address, the scheme, and whether the request comes from this machine."""
    result: dict[str, Any] = {}

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        result.update(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    names = {name.replace("_", "-"): value for name, value in headers.items()}
    TestClient(TrustedProxies(inner, trusted), base_url=HOST, client=(peer, 5000)).get("/", headers=names)
    return result["client"][0], result["scheme"], from_here(result, headers_of(result))  # type: ignore[arg-type]


def test_headers_count_from_trusted_proxies_alone() -> None:
    text = {"x_forwarded_for": "6.6.6.6, 198.51.100.7", "x_forwarded_proto": "https"}
    assert seen((), "127.0.0.1", **text) == ("127.0.0.1", "http", False)
    assert seen(("10.0.0.0/8",), "127.0.0.1", **text) == ("127.0.0.1", "http", False)
    assert seen(("127.0.0.1",), "127.0.0.1", **text) == ("198.51.100.7", "https", False)
    assert seen(("127.0.0.1", "198.51.100.0/24"), "127.0.0.1", **text) == ("6.6.6.6", "https", False)
    assert seen(("127.0.0.1",), "127.0.0.1", x_forwarded_for="6.6.6.6, nonsense")[0] == "127.0.0.1"
    assert seen(("127.0.0.1",), "127.0.0.1", x_forwarded_proto="javascript")[1] == "http"
    assert seen(("127.0.0.1",), "::ffff:127.0.0.1", **text)[0] == "198.51.100.7"
    # A proxy that adds no header is a proxy all the same.
    assert seen(("127.0.0.1",), "127.0.0.1") == ("127.0.0.1", "http", False)
    assert seen((), "127.0.0.1") == ("127.0.0.1", "http", True)


def test_a_proxy_that_is_no_address_is_told() -> None:
    with pytest.raises(OptionError, match="trusted_proxies"):
        networks(["proxy.example"])


@pytest.mark.parametrize(("metrics", "status"), [("auto", 401), ("local", 200), ("open", 200), ("off", 404)])
def test_the_metrics_have_a_switch_of_their_own(tmp_path: Path, metrics: str, status: int) -> None:
    service = Service(Settings(home=str(tmp_path), device="cpu", sign_in="on", metrics=metrics))
    app = FastAPI()
    app.add_middleware(
        Gateway, settings=service.settings, store=service.store, uploads=tmp_path, is_api=is_api, error_response=shaped
    )
    add_door_routes(app, service)
    add_health_routes(app, service)
    client = TestClient(app, base_url=HOST, client=("127.0.0.1", 5000))
    assert client.get("/metrics").status_code == status
    if metrics == "local":
        assert client.get("/metrics", headers={"X-Forwarded-Proto": "https"}).status_code == 401
