"""DeepL's and LibreTranslate's interfaces, with a translator that gives back what it gets: quotas, refusals, and requests as
Weblate and OmegaT send them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.core.settings import Settings
from engine.corpora.formats.documents.model import Result
from engine.store import Store
from studio.api import create_api
from studio.api.deps import Deps
from studio.services.service import Service
from tests.bases import EN_ZH

SENTENCE = "The rain stopped and nobody came."


@pytest.fixture
def api(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(Deps, "through", lambda self, route, work, units, ticket: [Result(one.parts) for one in units])
    store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))
    settings = Settings(home=str(tmp_path), device="cpu", max_upload_mib=1)
    return TestClient(
        create_api(Service(settings)), raise_server_exceptions=False,
        base_url="http://127.0.0.1:7860", client=("127.0.0.1", 5000),
    )  # fmt: skip


def key(store: Store, **given: Any) -> dict[str, str]:
    return {"Authorization": f"DeepL-Auth-Key {store.tokens.create('CAT', ['read', 'translate'], **given)[1]}"}


# -- quotas


def test_over_its_quota_a_token_gets_deepls_456(api: TestClient, store: Store) -> None:
    headers = key(store, quota=len(SENTENCE) + 5)
    wish = {"text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH"}
    assert api.post("/v2/translate", json=wish, headers=headers).status_code == 200
    refused = api.post("/v2/translate", json=wish, headers=headers)
    assert (refused.status_code, refused.json()) == (
        456,
        {"message": "Quota for this billing period has been exceeded."},
    )
    usage = {"character_count": len(SENTENCE), "character_limit": len(SENTENCE) + 5}
    assert api.get("/v2/usage", headers=headers).json() == usage, "what was refused is not counted"
    short = wish | {"text": ["Rain."]}
    assert api.post("/v2/translate", json=short, headers=headers).status_code == 200
    other = api.post("/v2/translate", json=wish, headers=key(store))
    assert other.status_code == 200, "another token has its own"


def test_over_its_quota_a_token_gets_429_of_the_others(api: TestClient, store: Store) -> None:
    secret = key(store, quota=3)["Authorization"].split()[1]
    wish = {"q": SENTENCE, "source": "en", "target": "zh", "api_key": secret}
    refused = api.post("/translate", json=wish)
    assert (refused.status_code, set(refused.json())) == (429, {"error"})
    bearer = {"Authorization": f"Bearer {secret}"}
    refused = api.post("/api/v1/translate", json={"texts": [SENTENCE], "source": "en", "target": "zh"}, headers=bearer)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "quota")


def test_what_failed_is_not_counted(api: TestClient, store: Store) -> None:
    headers = key(store, quota=100)
    wish = {"text": ["<b>open"], "source_lang": "EN", "target_lang": "ZH", "tag_handling": "xml"}
    assert api.post("/v2/translate", json=wish, headers=headers).status_code == 400
    assert api.get("/v2/usage", headers=headers).json() == {"character_count": 0, "character_limit": 100}


# -- one language


def test_a_text_in_the_target_language_comes_back_as_it_is(api: TestClient) -> None:
    wish = {"text": ["雨停了，没有人来。"], "target_lang": "ZH-HANS"}
    (one,) = api.post("/v2/translate", json=wish | {"source_lang": "ZH", "target_lang": "ZH"}).json()["translations"]
    assert one == {"detected_source_language": "ZH", "text": "雨停了，没有人来。", "billed_characters": 0}
    (one,) = api.post("/v2/translate", json=wish | {"target_lang": "ZH"}).json()["translations"]
    assert (one["detected_source_language"], one["text"]) == ("ZH", "雨停了，没有人来。")
    (one,) = api.post("/v2/translate", json={"text": [SENTENCE], "target_lang": "ZH"}).json()["translations"]
    assert one["billed_characters"] == len(SENTENCE), "another language is translated"
    assert api.post("/translate", json={"q": SENTENCE, "source": "en", "target": "en"}).json() == {
        "translatedText": SENTENCE
    }
    answer = api.post("/translate", json={"q": ["雨停了，没有人来。"], "source": "auto", "target": "zh"}).json()
    assert answer["translatedText"] == ["雨停了，没有人来。"]
    assert answer["detectedLanguage"][0]["language"] == "zh"


# -- refusals


@pytest.mark.parametrize(
    ("verb", "path", "given", "status"),
    [
        ("get", "/v2/nothing", {}, 404), ("delete", "/v2/translate", {}, 405), ("put", "/v3/style_rules", {}, 405),
        ("post", "/v2/translate", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ("post", "/v2/translate", {"content": b"text", "headers": {"Content-Type": "text/plain"}}, 400),
        ("post", "/v2/translate", {"content": b"x" * (9 << 20)}, 413),
        ("post", "/v2/document", {"data": {"target_lang": "ZH"}}, 400),
        ("post", "/v2/write/rephrase", {"json": {"text": ["Hi"], "target_lang": "EN-GB"}}, 404),
        ("get", "/v2/write", {}, 404), ("put", "/v2/write/rephrase/more", {}, 404), ("get", "/cat/1/v2/write", {}, 404),
        ("post", "/cat/1/v2/write/correct", {"data": {"text": "Hi", "target_lang": "EN-GB"}}, 404),
        ("post", "/cat/1/v2/nothing", {}, 404),
    ],
)  # fmt: skip
def test_every_refusal_is_json_of_deepls_shape(
    api: TestClient, verb: str, path: str, given: dict[str, Any], status: int
) -> None:
    answer = api.request(verb, path, **given)
    assert answer.status_code == status
    assert set(answer.json()) == {"message"}


LONG, LONGER = "雨" * 100_001, "雨" * 200_001


@pytest.mark.parametrize(
    ("path", "given", "most"),
    [
        ("/api/v1/translate", {"texts": ["a", LONG], "source": "en", "target": "zh"}, "100,000"),
        ("/api/v1/projects/1/proportions", {"sentences": [LONG]}, "100,000"),
        ("/translate", {"q": LONGER, "source": "en", "target": "zh"}, "200,000"),
        ("/translate", {"q": ["a", LONGER], "source": "auto", "target": "zh"}, "200,000"),
        ("/translate", {"q": LONGER, "source": "zh", "target": "zh"}, "200,000"),
        ("/detect", {"q": LONGER}, "200,000"),
        ("/detect", {"q": [LONG, LONG]}, "200,000"),
        ("/v2/translate", {"text": [LONGER], "target_lang": "ZH"}, "200,000"),
        ("/v2/translate", {"text": [LONGER], "source_lang": "ZH", "target_lang": "ZH"}, "200,000"),
    ],
)
def test_a_text_that_is_too_long_is_refused_in_one_sentence(
    api: TestClient, path: str, given: dict[str, Any], most: str
) -> None:
    answer = api.post(path, json=given)
    assert answer.status_code == 413, answer.text[:300]
    assert f"A text has more than {most} characters. Send it in parts, or as a document." in answer.text


def test_deepls_sentence_for_a_language_that_nothing_translates_to(api: TestClient) -> None:
    for target in ("ZH-HANT", "TLH"):
        answer = api.post("/v2/translate", json={"text": [SENTENCE], "source_lang": "EN", "target_lang": target})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("Value for 'target_lang' not supported.")


def test_formality_of_documents_is_that_of_texts(api: TestClient) -> None:
    for formality, words in (("more", "no language here has it"), ("rude", "formality")):
        answer = api.post(
            "/v2/document", data={"target_lang": "ZH", "formality": formality}, files={"file": ("a.txt", b"Rain.")}
        )
        assert answer.status_code == 400
        assert words in answer.json()["message"]
    data = {"source_lang": "EN", "target_lang": "ZH", "formality": "prefer_more"}
    assert api.post("/v2/document", data=data, files={"file": ("a.txt", b"Rain.")}).status_code == 200


# -- requests as tools send them


def test_weblates_way_of_asking(api: TestClient, store: Store) -> None:
    """As weblate/machinery/deepl.py of WeblateOrg/weblate (01c5add9) asks: languages of both sides, then batches of units whose
    placeholders are <x> elements.
    """
    headers = key(store, quota=200) | {"Content-Type": "application/json"}
    for side in ("source", "target"):
        assert {one["language"] for one in api.get(f"/v2/languages?type={side}", headers=headers).json()} >= {"ZH"}
    pairs = api.get("/v2/glossary-language-pairs", headers=headers).json()["supported_languages"]
    assert all(set(pair) == {"source_lang", "target_lang"} for pair in pairs)
    wish: dict[str, Any] = {
        "text": ['Open <x id="5"></x> now', "Rain &amp; snow"], "source_lang": "EN", "target_lang": "ZH",
        "formality": "default", "tag_handling": "xml", "ignore_tags": ["x"],
    }  # fmt: skip
    rows = api.post("/v2/translate", json=wish, headers=headers).json()["translations"]
    assert '<x id="5"' in rows[0]["text"]
    assert "&amp;" in rows[1]["text"]
    answer = api.post("/v2/translate", json=wish | {"text": ["x" * 300]}, headers=headers)
    assert answer.status_code == 456
    assert isinstance(answer.json()["message"], str)


def test_weblates_deepl_service_behind_a_project(api: TestClient, store: Store) -> None:
    """Its service is given `/cat/1/v2`: glossary pairs are asked for before every translation, and a glossary is made where Weblate
    has one, listed, named in the translation, and deleted.
    """
    headers = {"Authorization": f"DeepL-Auth-Key {store.tokens.create('CAT', ['read', 'translate', 'write'])[1]}"}
    here = "/cat/1/v2"
    for side, code in (("source", "EN"), ("target", "ZH-HANS")):
        assert code in {one["language"] for one in api.get(f"{here}/languages?type={side}", headers=headers).json()}
    pairs = api.get(f"{here}/glossary-language-pairs", headers=headers).json()["supported_languages"]
    assert {"source_lang": "en", "target_lang": "zh"} in pairs
    wish = {
        "name": "weblate:1:EN:ZH:0",
        "source_lang": "EN",
        "target_lang": "ZH",
        "entries": "rain\t雨",
        "entries_format": "tsv",
    }
    made = api.post(f"{here}/glossaries", json=wish, headers=headers).json()
    (listed,) = api.get(f"{here}/glossaries", headers=headers).json()["glossaries"]
    assert (listed["name"], listed["glossary_id"]) == (wish["name"], made["glossary_id"])
    texts: dict[str, Any] = {
        "text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH-HANS", "formality": "default", "tag_handling": "xml",
        "ignore_tags": ["x"], "glossary_id": made["glossary_id"],
    }  # fmt: skip
    assert api.post(f"{here}/translate", json=texts, headers=headers).status_code == 200
    assert api.delete(f"{here}/glossaries/{made['glossary_id']}", headers=headers).status_code == 204


def test_weblates_libretranslate_service(api: TestClient, store: Store) -> None:
    """As weblate/machinery/libretranslate.py of WeblateOrg/weblate (19117864) asks: the languages, then lists of texts with a
    key, or with none where none is set. A project of other languages refuses the trial from English to German.
    """
    headers = {"Accept": "application/json; charset=utf-8", "Referer": "https://weblate.example.org"}
    assert {"en", "zh"} <= {one["code"] for one in api.get("/cat/1/languages", headers=headers).json()}
    secret = store.tokens.create("CAT", ["translate"])[1]
    for given in (secret, ""):
        wish = {"api_key": given, "q": [SENTENCE, "Rain."], "source": "en", "target": "zh"}
        answer = api.post("/cat/1/translate", json=wish, headers=headers)
        assert answer.json() == {"translatedText": [SENTENCE, "Rain."]}
    trial = api.post("/cat/1/translate", json=wish | {"q": ["test"], "target": "de"}, headers=headers)
    assert trial.status_code == 400
    assert isinstance(trial.json()["error"], str)


def test_omegats_libretranslate_plugin(api: TestClient) -> None:
    """As LibreTranslate.java of omegat-org/omegat-libre-translate (12bd2afb) asks: a GET with q, source and target, at the
    address that it was given.
    """
    given = {"q": "<g0>Rain</g0> stopped<x1/>.", "source": "en", "target": "zh"}
    answer = api.get("/cat/1/base/translate", params=given)
    assert answer.json() == {"translatedText": given["q"]}


def test_deepls_library_tells_that_the_quota_is_used_up(api: TestClient, store: Store) -> None:
    deepl = pytest.importorskip("deepl")
    translator = deepl.Translator("any")
    answer = api.post(
        "/v2/translate",
        json={"text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH"},
        headers=key(store, quota=1),
    )
    with pytest.raises(deepl.QuotaExceededException):
        translator._raise_for_status(answer.status_code, answer.text, answer.json())


def test_documents_are_counted_when_they_are_queued(
    api: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, data = key(store, quota=8), {"source_lang": "EN", "target_lang": "ZH"}

    def send() -> int:
        return int(
            api.post("/v2/document", data=data, files={"file": ("a.txt", b"Rain.")}, headers=headers).status_code
        )

    with monkeypatch.context() as patch:
        patch.setattr("engine.store.queue.Jobs.enqueue", lambda *_, **__: 1 / 0)
        assert send() == 500
    assert api.get("/v2/usage", headers=headers).json()["character_count"] == 0, "given back"
    assert [send(), send()] == [200, 456]
    assert len(store.jobs.list()) == 1
