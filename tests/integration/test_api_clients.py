"""The studio on a real server with the shipped base, asked by the clients that people use: DeepL's and LibreTranslate's
libraries, and plain HTTP.
"""

from __future__ import annotations

import io
import json
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

import httpx
import pytest

from engine.core.settings import Settings
from engine.decoding.translate import translate
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
def plugin_file(tmp_path_factory: pytest.TempPathFactory, little_general_text: None) -> Path:
    """A plugin of the shipped base that trains nothing: its samples, looked up while it decodes."""
    from engine.workflows.customize.pipeline import customize
    from engine.workflows.customize.request import CustomizeRequest

    folder = tmp_path_factory.mktemp("made")
    lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:40]
    (folder / "style.txt").write_text("\n".join(lines), encoding="utf-8")
    options = {"max_updates": 2, "validate_every": 1, "tokens_per_batch": 256, "learning_rate": 0.05, "warmup": 1, "replay": 0.0}
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
    folder = home / "projects" / str(project.id) / "plugins" / "style.zip"
    folder.parent.mkdir(parents=True)
    shutil.copy(plugin_file, folder)
    plugin = store.plugins.create(project.id, "Style", method="lhuc", path=str(folder))
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 300
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.started
    yield Running(f"http://127.0.0.1:{port}", store, home, app, project, plugin)
    server.should_exit = True
    thread.join(timeout=120)


@pytest.fixture
def working(studio: Running) -> Iterator[None]:
    """A worker that does the studio's jobs, in a process of its own."""
    import subprocess
    import sys

    environment = os.environ | {"TAILORMT_HOME": str(studio.home), "TAILORMT_DEVICE": "cpu", "TAILORMT_THREADS": "1"}
    worker = subprocess.Popen([sys.executable, "-m", "engine.cli", "worker"], env=environment)
    yield
    worker.terminate()
    worker.wait(timeout=120)


@pytest.fixture(scope="module")
def vanilla(base_of: Any) -> list[str]:
    """What the base itself says."""
    return [str(text) for text in translate(base_of, ENGLISH)]


@pytest.fixture(scope="module")
def base_of() -> Any:
    from engine.base import BaseModel

    return BaseModel.load(EN_ZH, "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def customized(base_of: Any, plugin_file: Path) -> list[str]:
    from engine.base.decoding_options import Decoding
    from engine.plugins import Plugin

    plugin = Plugin.load(plugin_file, base_of)
    decoding = Decoding.from_mapping(plugin.card.get("decoding", {}))
    return [str(text) for text in translate(base_of, ENGLISH, plugin, decoding=decoding)]


# -- pages and programs on one server


@pytest.mark.smoke
def test_pages_and_the_interface_share_the_server(studio: Running) -> None:
    with urllib.request.urlopen(f"{studio.url}/samples") as page:
        assert "text/html" in page.headers["content-type"]
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "immutable" not in page.headers.get("cache-control", "")
        script = re.findall(r'src="\.?(/assets/[^"]+\.js)"', page.read().decode())[0]
    with urllib.request.urlopen(studio.url + script) as asset:
        assert "immutable" in asset.headers["cache-control"], "its name changes with its content"
    with urllib.request.urlopen(f"{studio.url}/api/v1/docs") as page:
        assert "default-src 'none'" in page.headers["content-security-policy"]
    with urllib.request.urlopen(f"{studio.url}/translate?q=The+rain+stopped.&source=en&target=zh") as answer:
        assert "translatedText" in answer.read().decode()
    with urllib.request.urlopen(f"{studio.url}/health") as answer:
        assert answer.read() == b'{"status":"ok"}'


# -- DeepL's library


def test_deepls_library(studio: Running, customized: list[str], vanilla: list[str]) -> None:
    import deepl

    translator = deepl.DeepLClient("any-key", server_url=studio.url)
    assert {language.code for language in translator.get_source_languages()} >= {"EN", "ZH"}
    targets = {language.code: language for language in translator.get_target_languages()}
    assert {"ZH", "EN-GB"} <= set(targets)
    assert targets["ZH"].supports_formality is False
    result = translator.translate_text(ENGLISH, source_lang="EN", target_lang="ZH", formality="prefer_more")
    assert [translation.text for translation in result] == customized, "the project's default plugin"
    assert {translation.detected_source_lang for translation in result} == {"EN"}
    assert [translation.billed_characters for translation in result] == list(map(len, ENGLISH))
    (style,) = translator.get_all_style_rules()
    assert style.name == "Style"
    translation = translator.translate_text(ENGLISH[1], target_lang="ZH-HANS", style_rule=style)
    assert translation.text == customized[1]
    (glossary,) = translator.list_glossaries()
    translation = translator.translate_text(ENGLISH[1], source_lang="EN", target_lang="ZH", glossary=glossary)
    assert translation.text == customized[1]
    alone = deepl.DeepLClient("any-key", server_url=f"{studio.url}/cat/{studio.project.id}/base/")
    assert [translation.text for translation in alone.translate_text(ENGLISH, target_lang="ZH")] == vanilla
    usage = translator.get_usage()
    assert usage.character.count >= sum(map(len, ENGLISH))
    assert not usage.any_limit_reached


def test_deepls_library_keeps_glossaries(studio: Running) -> None:
    import deepl
    from deepl.api_data import MultilingualGlossaryDictionaryEntries
    from deepl.util import convert_tsv_to_dict

    translator = deepl.DeepLClient("any-key", server_url=studio.url)
    entries = {"rain": "雨", "old door": "旧门"}
    glossary = translator.create_glossary("Ours", "EN", "ZH", entries)
    assert (glossary.ready, glossary.entry_count) == (True, 2)
    assert translator.get_glossary(glossary.glossary_id).name == "Ours"
    assert translator.get_glossary_entries(glossary) == entries
    translation = translator.translate_text(ENGLISH[1], source_lang="EN", target_lang="ZH", glossary=glossary)
    assert translation.text
    translator.delete_glossary(glossary)
    pairs = [MultilingualGlossaryDictionaryEntries(*way, entries) for way in (("EN", "ZH"), ("EN", "DE"))]
    several = translator.create_multilingual_glossary("Several", pairs)
    tables = translator.get_multilingual_glossary_entries(several, "EN", "DE").dictionaries
    assert [convert_tsv_to_dict(table.entries) for table in tables] == [entries], "the library leaves DeepL's lines as they are"
    german = MultilingualGlossaryDictionaryEntries("EN", "DE", {"rain": "Regen"})
    assert translator.update_multilingual_glossary_dictionary(several, german).name == "Several"
    assert [table.entry_count for table in translator.get_multilingual_glossary(several.glossary_id).dictionaries] == [2, 2]
    assert translator.replace_multilingual_glossary_dictionary(several, german).entry_count == 1
    translator.delete_multilingual_glossary(several)
    assert translator.list_multilingual_glossaries() == []


def test_deepls_library_with_tags(studio: Running) -> None:
    import deepl

    translator = deepl.Translator("any-key", server_url=studio.url)
    text = 'Press <b id="1">the old door</b> and <x id="2"/>wait &amp; see.'
    result = translator.translate_text(text, source_lang="EN", target_lang="ZH", tag_handling="xml")
    root = ET.fromstring(f"<r>{result.text}</r>")
    assert [element.tag for element in root.iter()] in (["r", "b", "x"], ["r", "x", "b"])
    assert root.find("b").text  # type: ignore[union-attr]
    assert re.search("[一-鿿]", result.text)
    document = "<doc><title>The rain</title><p>The rain stopped. I waited.</p></doc>"
    result = translator.translate_text(document, target_lang="ZH", tag_handling="xml")
    assert re.fullmatch("<doc><title>[^<>]+</title><p>[^<>]+</p></doc>", result.text)
    page = translator.translate_text("<p>The <i>rain</i><br>stopped", source_lang="EN", target_lang="ZH", tag_handling="html")
    assert page.text.count("<br>") == page.text.count("</i>") == 1
    with pytest.raises(deepl.DeepLException, match="not well-formed"):
        translator.translate_text("<b>open", source_lang="EN", target_lang="ZH", tag_handling="xml")


def test_deepls_library_translates_documents(studio: Running, working: None, tmp_path: Path) -> None:
    """Upload, status, result, as its `translate_document_from_filepath` asks for them."""
    import deepl

    translator = deepl.DeepLClient("any-key", server_url=f"{studio.url}/cat/{studio.project.id}/base")
    page = tmp_path / "page.html"
    page.write_text('<html><body><p class="a">The rain <b>stopped</b>.</p></body></html>', encoding="utf-8")
    status = translator.translate_document_from_filepath(page, tmp_path / "out.html", source_lang="EN", target_lang="ZH")
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
    wish: dict[str, Any] = {"q": ENGLISH, "source": "auto", "target": "zh", "alternatives": 2, "api_key": ""}
    result = httpx.post(f"{studio.url}/translate", json=wish, timeout=300).json()
    assert result["translatedText"] == customized
    assert result["detectedLanguage"][0]["language"] == "en"
    assert result["detectedLanguage"][0]["confidence"] > 30
    assert result["alternatives"] == [[], [], []]
    wish = {"q": '<p class="a">The rain <b>stopped</b>.</p>', "source": "en", "target": "zh", "format": "html"}
    text = httpx.post(f"{studio.url}/translate", data=wish, timeout=300).json()["translatedText"]
    assert text.startswith('<p class="a">')
    assert text.count("<b>") == text.count("</b>") == 1


def test_omegats_way_of_asking(studio: Running, vanilla: list[str]) -> None:
    """Its LibreTranslate plugin sends q, source and target in the address, and its tags as they are shown."""
    address = f"{studio.url}/cat/{studio.project.id}/base/translate"
    query = {"q": ENGLISH[0], "source": "en", "target": "zh"}
    assert httpx.get(address, params=query, timeout=300).json() == {"translatedText": vanilla[0]}
    query["q"] = "<g0>The rain</g0> stopped<x1/>."
    text = httpx.get(address, params=query, timeout=300).json()["translatedText"]
    assert "%s" in httpx.get(address, params={**query, "q": "The rain stopped, %s."}, timeout=300).json()["translatedText"]
    assert re.fullmatch(r"[^<>]*<g0>[^<>]+</g0>[^<>]*<x1/>[^<>]*", text), text


def test_the_addresses_of_the_page_cat_tools(studio: Running, customized: list[str], vanilla: list[str]) -> None:
    """What the page tells people to copy, given to both libraries."""
    import deepl
    from libretranslatepy import LibreTranslateAPI

    from studio.services.cat_connections import connection
    from studio.services.service import Service

    service = Service(Settings(home=str(studio.home), device="cpu", threads=1))
    for choice, expected in (("", customized), (str(studio.plugin.id), customized), ("base", vanilla)):
        link = connection(service, studio.url, studio.project, choice)
        translator = deepl.DeepLClient(link.key, server_url=link.library)
        assert (
            translator.translate_text(ENGLISH[1], source_lang=link.deepl_source, target_lang=link.deepl_target).text == expected[1]
        )
        assert LibreTranslateAPI(link.address, api_key=link.key).translate(ENGLISH[1], link.source, link.target) == expected[1]
        query = {"q": ENGLISH[1], "source": link.source, "target": link.target}
        assert httpx.get(link.command, params=query, timeout=300).json() == {"translatedText": expected[1]}
        assert httpx.get(f"{link.versioned}/usage", timeout=300).status_code == 200


# -- plain HTTP


@pytest.fixture
def api(studio: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{studio.url}/api/v1", timeout=600) as client:
        yield client


def ask(api: httpx.Client, verb: str, path: str, **options: Any) -> Any:
    """The body of an answer that has to be a good one."""
    answer = api.request(verb, path, **options)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def translated(api: httpx.Client, texts: list[str], **wish: Any) -> list[str]:
    result = ask(api, "POST", "/translate", json={"texts": texts, **wish})
    return [translation["text"] for translation in result["translations"]]


def states(api: httpx.Client, job: int) -> list[dict[str, Any]]:
    """What a job's stream of events says until the job has ended."""
    with api.stream("GET", f"/jobs/{job}/events") as answer:
        lines = list(answer.iter_lines())
    kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    return [row for kind, row in zip(kinds, data, strict=True) if kind == "job"]


def test_from_project_to_plugin(studio: Running, api: httpx.Client, plugin_file: Path, tmp_path: Path, vanilla: list[str]) -> None:
    from engine.jobs.worker import run

    assert ask(api, "GET", "/status")["scopes"] == ["read", "translate", "write"]
    wish = {"name": "By program", "source": "en", "target": "zh", "base": "en-zh"}
    number = ask(api, "POST", "/projects", json=wish)["id"]
    here = f"/projects/{number}"
    text = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:30]
    job = ask(api, "POST", f"{here}/samples", files=[("files", ("lu xun.txt", "\n".join(text).encode()))])
    settings = Settings(home=str(studio.home), device="cpu", threads=1)
    worker = threading.Thread(target=run, args=(settings, True))
    worker.start()
    done = states(api, job["id"])[-1]
    worker.join(timeout=600)  # also for the first look, which follows
    assert done["state"] == "succeeded"
    selected = done["result"]["kept"]
    segments = ask(api, "GET", f"{here}/samples/segments", params={"limit": 500})
    assert selected == segments["total"] == len(segments["items"]) > 20
    assert ask(api, "GET", f"{here}/samples")["report"]["kept"] == selected
    assert ask(api, "GET", f"{here}/phrases", params={"search": text[0][:1]})["items"]
    shares = ask(api, "POST", f"{here}/proportions", json={"sentences": [text[0]]})  # fitted when the samples were read
    assert len(shares["domains"]) == 2
    assert "".join(word["text"] for word in shares["sentences"][0]["words"]) in text[0].replace(" ", "")
    plugin = ask(api, "POST", f"{here}/plugins", files={"file": ("style.zip", plugin_file.read_bytes())})
    assert plugin["default"] is False, "what was imported has to be chosen"
    assert ask(api, "GET", f"/plugins/{plugin['id']}/card")["config"]["method"] == "lhuc"
    assert api.get(f"/plugins/{plugin['id']}/download").content == plugin_file.read_bytes()
    assert translated(api, ENGLISH, project=str(number), plugin="base") == vanilla
    ask(api, "PUT", f"{here}/default-plugin", json={"plugin": None})
    message = ask(api, "POST", "/translate", json={"texts": ENGLISH[:1], "project": str(number)})
    assert (message["plugin"], message["source"], message["base"]) == (None, "en", "en-zh")
    ask(api, "PUT", f"{here}/default-plugin", json={"plugin": plugin["id"]})
    comparison = ask(api, "POST", f"{here}/comparisons", json={"texts": ENGLISH[:2], "title": "Two"})
    assert [row["vanilla"] for row in comparison["rows"]] == vanilla[:2]
    assert ask(api, "GET", f"/comparisons/{comparison['id']}")["rows"] == comparison["rows"]
    assert [row["title"] for row in ask(api, "GET", f"{here}/comparisons")["items"]] == ["Two"]
    refused = api.get("/projects/999")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
    assert "no project 999" in refused.json()["error"]["message"]
    ask(api, "DELETE", f"/plugins/{plugin['id']}", params={"file": True})
    ask(api, "DELETE", here, params={"files": True})
    assert not (studio.home / "projects" / str(number)).exists()


def test_tokens_by_the_command_line(tailormt: Callable[..., Ran]) -> None:
    token = json.loads(tailormt("token", "create", "CAT", "--scope", "translate", "--json").out)
    assert token["token"].startswith("tmt_")
    assert "CAT" in tailormt("token", "list").out
    assert tailormt("token", "revoke", token["id"]).code == 0
    assert "no tokens" in tailormt("token", "list").out
    assert "not a token scope" in tailormt("token", "create", "x", "--scope", "all").sentence


def test_documents_and_comparisons_of_files(studio: Running, working: None, api: httpx.Client) -> None:
    here = f"/projects/{studio.project.id}"
    subtitles = b"1\n00:00:01,000 --> 00:00:02,000\nThe rain stopped.\n"
    sent = ask(api, "POST", f"{here}/documents", files={"file": ("a.srt", subtitles)}, data={"plugin": "base"})
    assert states(api, sent["job"]["id"])[-1]["state"] == "succeeded"
    assert "-->" in api.get(f"/documents/{sent['id']}/download").text
    files = [
        ("files", ("en.txt", "\n".join(ENGLISH).encode())),
        ("files", ("zh.txt", "雨停了。\n河边的老茶馆去年关了门。\n我等一封信。\n".encode())),
    ]
    systems = [{"plugin": "Style", "strength": 1.0}, {"plugin": "Style", "strength": 0.5}]
    answer = ask(api, "POST", f"{here}/comparisons/files", files=files, data={"systems": json.dumps(systems)})
    assert states(api, answer["job"]["id"])[-1]["state"] == "succeeded"
    sheet = f"/comparisons/{answer['comparison']['id']}"
    rows = ask(api, "GET", f"{sheet}/figures")
    bleu = [row["system"] for row in rows if row["metric"] == "bleu" and row["kind"] == "text"]
    assert bleu == ["vanilla", "Style", "Style (2)"]
    assert b"Style (2)" in api.get(f"{sheet}/export", params={"format": "html"}).content
    lines = ask(api, "GET", f"{sheet}/lines")["items"]
    assert len(lines) == 3
    assert all(line["scores"][0] is not None for line in lines)


def test_many_at_once_share_batches_and_get_their_own_texts(studio: Running, api: httpx.Client, vanilla: list[str]) -> None:
    translations = dict(zip(ENGLISH, vanilla, strict=True))
    wishes = [[ENGLISH[(i + k) % 3] for k in range(1 + i % 3)] for i in range(24)]

    def one(texts: list[str]) -> list[str]:
        return translated(api, texts, project=str(studio.project.id), plugin="base")

    with ThreadPoolExecutor(12) as pool:
        result = list(pool.map(one, wishes))
    assert result == [[translations[text] for text in texts] for texts in wishes]


def test_the_server_answers_while_it_translates(studio: Running, api: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        many = [f"{text[:-1]} in room {number}." for number in range(20) for text in ENGLISH]
        long = pool.submit(translated, api, many, project=str(studio.project.id), plugin="base")
        answers = 0
        while not long.done():
            assert ask(api, "GET", "/status")["version"]
            answers += 1
        assert answers > 10, "of a server that is held up, one is answered before it begins and one after its end"
        assert len(long.result()) == len(many)
