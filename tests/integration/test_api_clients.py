"""The studio on a real server with the shipped base, asked by the clients that people use: DeepL's and LibreTranslate's
libraries, our own client and command line, and schemathesis over the whole OpenAPI.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.client import Client, ClientError
from engine.errors import InputError, TailorError
from engine.settings import Settings
from engine.store import PluginRow, ProjectRow, Store
from tests.bases import EN_ZH, SAMPLES
from tests.conftest import Ran

ENGLISH = ["The rain stopped.", "The old teahouse by the river closed last year.", "I waited for a letter."]


@dataclass
class Running:
    """A studio on a port of this machine, with a project that has a plugin."""

    url: str
    store: Store
    home: Path
    app: Any
    project: ProjectRow
    plugin: PluginRow


@pytest.fixture(scope="module")
def plugin_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin of the shipped base that trains nothing: its samples, looked up while it decodes."""
    from engine.pipeline import CustomizeRequest, customize

    folder = tmp_path_factory.mktemp("made")
    lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:40]
    (folder / "style.txt").write_text("\n".join(lines), encoding="utf-8")
    options = '{"max_updates": 2, "validate_every": 1, "tokens_per_batch": 256, "learning_rate": 0.05, "warmup": 1}'
    request = CustomizeRequest(
        base=str(EN_ZH), source="en", target="zh", samples=(str(folder / "style.txt"),), method="lhuc", budget="quick",
        output=str(folder / "style.zip"), name="Style", training_options=options,
    )  # fmt: skip
    customize(request, folder / "workspace")
    return folder / "style.zip"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, plugin_file: Path) -> Iterator[Running]:
    import uvicorn

    from studio.app import create_app

    home = tmp_path_factory.mktemp("home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = Settings(home=str(home), port=port, device="cpu", threads=1)
    store = Store(settings.store_url)
    project = store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))
    place = home / "projects" / str(project.id) / "plugins" / "style.zip"
    place.parent.mkdir(parents=True)
    shutil.copy(plugin_file, place)
    plugin = store.plugins.create(project.id, "Style", method="lhuc", path=str(place))
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.started
    yield Running(f"http://127.0.0.1:{port}", store, home, app, project, plugin)
    server.should_exit = True
    thread.join(timeout=20)


@pytest.fixture
def working(studio: Running) -> Iterator[None]:
    """A worker that does the studio's jobs, in a process of its own."""
    import subprocess
    import sys

    environment = os.environ | {"TAILORMT_HOME": str(studio.home), "TAILORMT_DEVICE": "cpu", "TAILORMT_THREADS": "1"}
    worker = subprocess.Popen([sys.executable, "-m", "engine.cli", "worker"], env=environment)
    yield
    worker.terminate()
    worker.wait(timeout=20)


@pytest.fixture(scope="module")
def vanilla(base_of: Any) -> list[str]:
    """What the base itself says."""
    return [str(text) for text in base_of.translate(ENGLISH)]


@pytest.fixture(scope="module")
def base_of() -> Any:
    from engine.base import BaseModel

    return BaseModel.load(EN_ZH, "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def customized(base_of: Any, plugin_file: Path) -> list[str]:
    from engine.decoding.options import Decoding
    from engine.plugins import Plugin

    plugin = Plugin.load(plugin_file, base_of)
    decoding = Decoding.from_mapping(plugin.card.get("decoding", {}))
    return [str(text) for text in base_of.translate(ENGLISH, plugin, decoding=decoding)]


# -- pages and programs on one server


def test_pages_and_the_interface_share_the_server(studio: Running) -> None:
    with urllib.request.urlopen(f"{studio.url}/samples") as page:
        assert "text/html" in page.headers["content-type"]
        assert "default-src 'self'" in page.headers["content-security-policy"]
    with urllib.request.urlopen(f"{studio.url}/api/v1/docs") as page:
        assert "default-src 'self'" in page.headers["content-security-policy"]
    with urllib.request.urlopen(f"{studio.url}/translate?q=The+rain+stopped.&source=en&target=zh") as answer:
        assert "translatedText" in answer.read().decode()
    with urllib.request.urlopen(f"{studio.url}/health") as answer:
        assert answer.read() == b'{"status":"ok"}'


# -- DeepL's library


def test_deepls_library(studio: Running, customized: list[str], vanilla: list[str]) -> None:
    import deepl

    translator = deepl.DeepLClient("any-key", server_url=studio.url)
    assert {one.code for one in translator.get_source_languages()} >= {"EN", "ZH"}
    targets = {one.code: one for one in translator.get_target_languages()}
    assert {"ZH", "EN-GB"} <= set(targets)
    assert targets["ZH"].supports_formality is False
    found = translator.translate_text(ENGLISH, source_lang="EN", target_lang="ZH", formality="prefer_more")
    assert [one.text for one in found] == customized, "the project's default plugin"
    assert {one.detected_source_lang for one in found} == {"EN"}
    assert [one.billed_characters for one in found] == list(map(len, ENGLISH))
    (style,) = translator.get_all_style_rules()
    assert style.name == "Style"
    one = translator.translate_text(ENGLISH[1], target_lang="ZH-HANS", style_rule=style)
    assert one.text == customized[1]
    (glossary,) = translator.list_glossaries()
    one = translator.translate_text(ENGLISH[1], source_lang="EN", target_lang="ZH", glossary=glossary)
    assert one.text == customized[1]
    alone = deepl.DeepLClient("any-key", server_url=f"{studio.url}/cat/{studio.project.id}/base/")
    assert [one.text for one in alone.translate_text(ENGLISH, target_lang="ZH")] == vanilla
    usage = translator.get_usage()
    assert usage.character.count >= sum(map(len, ENGLISH))
    assert not usage.any_limit_reached


def test_deepls_library_with_tags(studio: Running) -> None:
    import deepl

    translator = deepl.Translator("any-key", server_url=studio.url)
    text = 'Press <b id="1">the old door</b> and <x id="2"/>wait &amp; see.'
    found = translator.translate_text(text, source_lang="EN", target_lang="ZH", tag_handling="xml")
    root = ET.fromstring(f"<r>{found.text}</r>")
    assert [element.tag for element in root.iter()] in (["r", "b", "x"], ["r", "x", "b"])
    assert root.find("b").text  # type: ignore[union-attr]
    assert re.search("[一-鿿]", found.text)
    document = "<doc><title>The rain</title><p>The rain stopped. I waited.</p></doc>"
    found = translator.translate_text(document, target_lang="ZH", tag_handling="xml")
    assert re.fullmatch("<doc><title>[^<>]+</title><p>[^<>]+</p></doc>", found.text)
    page = translator.translate_text(
        "<p>The <i>rain</i><br>stopped", source_lang="EN", target_lang="ZH", tag_handling="html"
    )
    assert page.text.count("<br>") == page.text.count("</i>") == 1
    with pytest.raises(deepl.DeepLException, match="not well-formed"):
        translator.translate_text("<b>open", source_lang="EN", target_lang="ZH", tag_handling="xml")


def test_deepls_library_translates_documents(studio: Running, working: None, tmp_path: Path) -> None:
    """Upload, status, result, as its `translate_document_from_filepath` asks for them."""
    import deepl

    translator = deepl.DeepLClient("any-key", server_url=f"{studio.url}/cat/{studio.project.id}/base")
    page = tmp_path / "page.html"
    page.write_text('<html><body><p class="a">The rain <b>stopped</b>.</p></body></html>', encoding="utf-8")
    status = translator.translate_document_from_filepath(
        page, tmp_path / "out.html", source_lang="EN", target_lang="ZH"
    )
    assert status.done
    assert status.billed_characters == len("The rain stopped.")
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert '<p class="a">' in text
    assert re.search("[一-鿿]", text)
    with pytest.raises(deepl.DeepLException, match="no format that can be translated"):
        translator.translate_document(b"x", io.BytesIO(), filename="a.exe", target_lang="ZH")
    (broken := tmp_path / "broken.docx").write_bytes(b"PK no archive")
    with pytest.raises(deepl.DeepLException):
        translator.translate_document_from_filepath(broken, tmp_path / "no.docx", target_lang="ZH")
    assert not (tmp_path / "no.docx").exists()


def test_deepls_library_is_told_what_is_wrong(studio: Running) -> None:
    import deepl

    translator = deepl.Translator("any-key", server_url=studio.url)
    with pytest.raises(deepl.DeepLException, match="Nothing here translates from en to tlh"):
        translator.translate_text("Hi", source_lang="EN", target_lang="TLH")
    _, secret = studio.store.tokens.create("gone", ["translate"])
    studio.store.tokens.revoke(studio.store.tokens.list()[0].id)
    with pytest.raises(deepl.AuthorizationException, match="revoked"):
        deepl.Translator(secret, server_url=studio.url).get_usage()
    _, good = studio.store.tokens.create("good", ["translate"])
    counted = deepl.Translator(good, server_url=studio.url)
    counted.translate_text("The rain stopped.", target_lang="ZH")
    assert counted.get_usage().character.count == len("The rain stopped.")


# -- LibreTranslate's


def test_libretranslates_library(studio: Running, customized: list[str], vanilla: list[str]) -> None:
    from libretranslatepy import LibreTranslateAPI

    api = LibreTranslateAPI(studio.url)
    assert api.translate(ENGLISH[0], "en", "zh") == customized[0]
    assert {row["code"] for row in api.languages()} >= {"en", "zh"}
    assert api.detect("The rain stopped and nobody came.")[0]["language"] == "en"
    assert LibreTranslateAPI(f"{studio.url}/cat/Lu%20Xun/base").translate(ENGLISH[1], "en", "zh") == vanilla[1]
    with pytest.raises(urllib.error.HTTPError) as refused:
        api.translate("Hi", "en", "tlh")
    assert refused.value.code == 400
    assert b"error" in refused.value.read()


def test_libretranslates_json_with_lists_detection_and_html(studio: Running, customized: list[str]) -> None:
    import httpx

    wish: dict[str, Any] = {"q": ENGLISH, "source": "auto", "target": "zh", "alternatives": 2, "api_key": ""}
    found = httpx.post(f"{studio.url}/translate", json=wish, timeout=60).json()
    assert found["translatedText"] == customized
    assert found["detectedLanguage"][0]["language"] == "en"
    assert found["detectedLanguage"][0]["confidence"] > 30
    assert found["alternatives"] == [[], [], []]
    wish = {"q": '<p class="a">The rain <b>stopped</b>.</p>', "source": "en", "target": "zh", "format": "html"}
    text = httpx.post(f"{studio.url}/translate", data=wish, timeout=60).json()["translatedText"]
    assert text.startswith('<p class="a">')
    assert text.count("<b>") == text.count("</b>") == 1


def test_omegats_way_of_asking(studio: Running, vanilla: list[str]) -> None:
    """Its LibreTranslate plugin sends q, source and target in the address, and its tags as they are shown."""
    import httpx

    address = f"{studio.url}/cat/{studio.project.id}/base/translate"
    given = {"q": ENGLISH[0], "source": "en", "target": "zh"}
    assert httpx.get(address, params=given, timeout=60).json() == {"translatedText": vanilla[0]}
    given["q"] = "<g0>The rain</g0> stopped<x1/>."
    text = httpx.get(address, params=given, timeout=60).json()["translatedText"]
    assert (
        "%s" in httpx.get(address, params={**given, "q": "The rain stopped, %s."}, timeout=60).json()["translatedText"]
    )
    assert re.fullmatch(r"[^<>]*<g0>[^<>]+</g0>[^<>]*<x1/>[^<>]*", text), text


# -- our own


def test_our_client_from_project_to_plugin(
    studio: Running, plugin_file: Path, tmp_path: Path, vanilla: list[str]
) -> None:
    from engine.jobs.worker import run

    with Client(studio.url) as client:
        assert client.status()["scopes"] == ["read", "translate", "write"]
        project = client.create_project("By program", "en", "zh", "en-zh")
        number = project["id"]
        text = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:30]
        (tmp_path / "lu xun.txt").write_text("\n".join(text), encoding="utf-8")
        job = client.upload(number, [tmp_path / "lu xun.txt"])
        settings = Settings(home=str(studio.home), device="cpu", threads=1)
        worker = threading.Thread(target=run, args=(settings, True))
        worker.start()
        steps: list[str] = []
        done = client.wait(job, lambda row: steps.append(row["state"]))
        worker.join(timeout=60)
        assert done["result"]["kept"] == len(list(client.segments(number))) > 20
        assert "succeeded" in steps
        assert client.samples(number)["report"]["kept"] == done["result"]["kept"]
        assert any(client.phrases(number, search=text[0][:1]))
        shares = client.proportions(number, [text[0]])  # fitted when the samples were read
        assert len(shares["domains"]) == 2
        assert "".join(word["text"] for word in shares["sentences"][0]["words"]) in text[0].replace(" ", "")
        plugin = client.import_plugin(number, plugin_file)
        assert plugin["default"] is True
        assert client.plugin_card(plugin["id"])["config"]["method"] == "lhuc"
        copy = client.download_plugin(plugin["id"], tmp_path / "copy.zip")
        assert copy.read_bytes() == plugin_file.read_bytes()
        assert client.translate(ENGLISH, project=number, plugin="base") == vanilla
        client.set_default(number, None)
        told = client.translate_fully(ENGLISH[:1], project=number)
        assert (told["plugin"], told["source"], told["base"]) == (None, "en", "en-zh")
        client.set_default(number, plugin["id"])
        made = client.compare(number, ENGLISH[:2], title="Two")
        assert [row["vanilla"] for row in made["rows"]] == vanilla[:2]
        assert client.comparison(made["id"])["rows"] == made["rows"]
        assert [row["title"] for row in client.comparisons(number)] == ["Two"]
        with pytest.raises(ClientError, match="no project 999") as refused:
            client.project(999)
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        client.delete_plugin(plugin["id"], file=True)
        client.delete_project(number, files=True)
        assert not (studio.home / "projects" / str(number)).exists()
    with pytest.raises(TailorError, match="cannot be reached"), Client("http://127.0.0.1:9") as nobody:
        nobody.status()
    with pytest.raises(InputError, match="cannot be read"), Client(studio.url) as client:
        client.upload(1, ["/nowhere/x.txt"])


def test_the_command_line_asks_a_studio(
    studio: Running, tailormt: Callable[..., Ran], tmp_path: Path, vanilla: list[str]
) -> None:
    import json

    server = ("--server", studio.url)
    (tmp_path / "in.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    done = tailormt("client", "translate", tmp_path / "in.txt", "--project", "Lu Xun", "--plugin", "base", *server)
    assert done.code == 0
    assert done.out.splitlines() == vanilla
    found = json.loads(tailormt("client", "plugins", "--json", *server).out)
    assert [row["name"] for row in found] == ["Style"]
    assert "Lu Xun" in tailormt("client", "projects", *server).out
    assert "no project Nobody" in tailormt("client", "plugins", "--project", "Nobody", *server).sentence
    made = json.loads(tailormt("token", "create", "CAT", "--scope", "translate", "--json").out)
    assert made["token"].startswith("tmt_")
    assert "CAT" in tailormt("token", "list").out
    assert tailormt("token", "revoke", made["id"]).code == 0
    assert "no tokens" in tailormt("token", "list").out
    assert "no scope" in tailormt("token", "create", "x", "--scope", "all").sentence


def test_the_command_line_sends_documents_and_files(
    studio: Running, working: None, tailormt: Callable[..., Ran], tmp_path: Path
) -> None:
    import json

    where = ("--server", studio.url, "--project", "Lu Xun")
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe rain stopped.\n", encoding="utf-8")
    done = tailormt("client", "document", tmp_path / "a.srt", *where, "--plugin", "base")
    assert done.code == 0, done.err
    assert "-->" in (tmp_path / "a.zh.srt").read_text(encoding="utf-8")
    (tmp_path / "en.txt").write_text("\n".join(ENGLISH), encoding="utf-8")
    (tmp_path / "zh.txt").write_text("雨停了。\n河边的老茶馆去年关了门。\n我等一封信。\n", encoding="utf-8")
    given = (tmp_path / "en.txt", tmp_path / "zh.txt", *where, "--plugin", "Style", "--plugin", "Style@0.5")
    done = tailormt("client", "compare", *given, "-o", tmp_path / "out.tsv", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    bleu = [row["system"] for row in found["figures"] if row["metric"] == "bleu" and row["kind"] == "text"]
    assert bleu == ["vanilla", "Style", "Style (2)"]
    assert len((tmp_path / "out.tsv").read_text(encoding="utf-8-sig").splitlines()) == 4
    with Client(studio.url) as client:
        shown = list(client.lines(found["comparison"]))
        assert len(shown) == 3
        assert all(line["scores"][0] is not None for line in shown)
        wish = {"one": "Style", "two": "vanilla", "raters": ["Ann"]}
        if any(line["texts"][0] != line["texts"][1] for line in shown):
            row = client.start_rating(studio.project.id, found["comparison"], **wish)
            done = tailormt("client", "rating", row["id"], "--server", studio.url, "-o", tmp_path / "answers.csv")
            assert "style" in done.out
            assert (tmp_path / "answers.csv").exists()


def test_many_at_once_share_batches_and_get_their_own_texts(studio: Running, vanilla: list[str]) -> None:
    with Client(studio.url) as client:
        known = dict(zip(ENGLISH, vanilla, strict=True))
        wishes = [[ENGLISH[(i + k) % 3] for k in range(1 + i % 3)] for i in range(24)]

        def ask(texts: list[str]) -> list[str]:
            return client.translate(texts, project=studio.project.id, plugin="base")

        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(ask, wishes))
    assert found == [[known[text] for text in texts] for texts in wishes]


def test_the_server_answers_while_it_translates(studio: Running) -> None:
    with Client(studio.url) as client, ThreadPoolExecutor(1) as pool:
        many = [f"{text[:-1]} in room {number}." for number in range(60) for text in ENGLISH]
        long = pool.submit(client.translate, many, project=studio.project.id, plugin="base")
        time.sleep(0.2)
        begun = time.monotonic()
        assert client.status()["version"]
        waited = time.monotonic() - begun
        assert not long.done()
        assert waited < 2
        assert len(long.result(120)) == len(many)
