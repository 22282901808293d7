"""The server goes away under an open page: a bar in the interface's language says so, and the page comes back with the server."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from engine.core.settings import Settings
from tests.browser.conftest import free_settings, served
from tests.waiting import until

LOST = {
    "en": "The studio is not responding. This page reloads automatically when it does.",
    "zh": "程序没有响应。恢复响应后，本页会自动重新加载。",
}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Those of a studio with a home of its own, whose worker ends with the test."""
    from engine.jobs import stop_background_worker

    settings = free_settings(tmp_path / "home")
    yield settings
    stop_background_worker(settings)


def test_a_page_says_that_the_server_is_gone_and_comes_back_with_it(settings: Settings, chromium: Any) -> None:
    contexts = {code: chromium.new_context(locale=code) for code in LOST}  # whose consoles may complain of the server
    pages = {code: context.new_page() for code, context in contexts.items()}
    addresses = {code: f"http://127.0.0.1:{settings.port}/samples?project=new&lang={code}" for code in LOST}
    button = {"en": "Read samples", "zh": "读取样本"}
    with served(settings):
        for code, page in pages.items():
            page.goto(addresses[code])
            expect(page.get_by_role("button", name=button[code])).to_be_visible()
            page.evaluate("window.before = true")
            assert page.locator(".tm-connection").count() == 0
    for code, page in pages.items():
        expect(page.get_by_role("alert").filter(has_text=LOST[code])).to_be_visible()
        expect(page.locator(".toast-wrap")).to_be_hidden()
        page.locator(".tm-foot a").first.click()
        page.wait_for_timeout(1500)
        assert page.evaluate("window.before"), "a link does not lead to an error page of the browser"
    with served(settings):
        for code, page in pages.items():
            page.wait_for_function("!window.before")
            expect(page.get_by_role("button", name=button[code])).to_be_visible()
            expect(page).to_have_url(addresses[code])
            expect(page.locator(".tm-connection")).to_have_count(0)
    for context in contexts.values():
        context.close()


def test_the_studio_ends_although_a_page_keeps_its_stream(settings: Settings) -> None:
    with served(settings) as (url, process), httpx.stream("GET", f"{url}/gradio_api/heartbeat/page", timeout=300) as page:
        events = page.iter_text()  # which closes the stream once nobody holds it
        assert "ALIVE" in next(events)
        process.terminate()
        process.wait(timeout=300)


def test_the_studio_ends_although_a_request_never_does(settings: Settings) -> None:
    head = (
        "POST /api/v1/translate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n"
    )
    with served(settings) as (_, process), socket.create_connection(("127.0.0.1", settings.port)) as client:
        client.sendall(head.format(port=settings.port).encode())
        time.sleep(0.5)
        process.terminate()
        process.wait(timeout=300)


def test_an_upload_that_breaks_off_is_no_error_of_the_studio(settings: Settings) -> None:
    head = (
        "POST /gradio_api/upload HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9000000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    )
    with served(settings) as (url, _):
        for length in (0, 70_000, 2_000_000):
            with socket.create_connection(("127.0.0.1", settings.port)) as browser:
                browser.sendall(head.format(port=settings.port).encode() + b"x" * length)
                time.sleep(0.5)
        with urllib.request.urlopen(f"{url}/healthz", timeout=300) as answer:
            assert answer.status == 200
        until(lambda: not [path for path in (settings.home_dir / "uploads").rglob("*") if path.is_file()])
