"""DeepL's and LibreTranslate's interfaces, with a translator that gives back what it gets: quotas, refusals, and requests as
Weblate and OmegaT send them.
"""

from __future__ import annotations

import re
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
    monkeypatch.setattr(Deps, "through", lambda self, route, work, units, ticket: [Result(unit.parts) for unit in units])
    store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))
    settings = Settings(home=str(tmp_path), device="cpu", max_upload_mib=1)
    return TestClient(
        create_api(Service(settings)), raise_server_exceptions=False, base_url="http://127.0.0.1:7860", client=("127.0.0.1", 5000)
    )


def key(store: Store, **options: Any) -> dict[str, str]:
    return {"Authorization": f"DeepL-Auth-Key {store.tokens.create('CAT', ['read', 'translate'], **options)[1]}"}


# -- quotas


def test_over_its_quota_a_token_gets_deepls_456(api: TestClient, store: Store) -> None:
    headers = key(store, quota=len(SENTENCE) + 5)
    wish = {"text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH"}
    assert api.post("/v2/translate", json=wish, headers=headers).status_code == 200
    refused = api.post("/v2/translate", json=wish, headers=headers)
    assert (refused.status_code, refused.json()) == (456, {"message": "Quota for this billing period has been exceeded."})
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
    (translation,) = api.post("/v2/translate", json=wish | {"source_lang": "ZH", "target_lang": "ZH"}).json()["translations"]
    assert translation == {"detected_source_language": "ZH", "text": "雨停了，没有人来。", "billed_characters": 0}
    (translation,) = api.post("/v2/translate", json=wish | {"target_lang": "ZH"}).json()["translations"]
    assert (translation["detected_source_language"], translation["text"]) == ("ZH", "雨停了，没有人来。")
    (translation,) = api.post("/v2/translate", json={"text": [SENTENCE], "target_lang": "ZH"}).json()["translations"]
    assert translation["billed_characters"] == len(SENTENCE), "another language is translated"
    assert api.post("/translate", json={"q": SENTENCE, "source": "en", "target": "en"}).json() == {"translatedText": SENTENCE}
    answer = api.post("/translate", json={"q": ["雨停了，没有人来。"], "source": "auto", "target": "zh"}).json()
    assert answer["translatedText"] == ["雨停了，没有人来。"]
    assert answer["detectedLanguage"][0]["language"] == "zh"


# -- refusals


@pytest.mark.parametrize(
    ("verb", "path", "given", "status"),
    [
        ("get", "/v2/nothing", {}, 404), ("delete", "/v2/translate", {}, 405), ("put", "/v3/style_rules", {}, 405),
        ("post", "/v3/style_rules", {"json": {"name": "Brief", "language": "zh"}}, 405),
        ("patch", "/v3/style_rules/x", {"json": {"name": "Brief"}}, 405), ("delete", "/v3/style_rules/x", {}, 405),
        ("get", "/v3/style_rules/x", {}, 404), ("put", "/v3/style_rules/x/configured_rules", {"json": {}}, 404),
        ("post", "/cat/1/v3/style_rules/x/custom_instructions", {"json": {"label": "a", "prompt": "b"}}, 404),
        ("get", "/v3/style_rules?page=-1", {}, 400),
        ("get", "/v3/translation_memories/x", {}, 404), ("delete", "/v3/translation_memories/x", {}, 404),
        ("get", "/v3/translation_memories/x/segments?page_size=5", {}, 404),
        ("post", "/v3/translation_memories/import", {"json": {"source_file": {"file_name": "a.tmx"}}}, 404),
        ("post", "/v3/translation_memories/x/export", {}, 404), ("get", "/v3/translation_memories/jobs/x", {}, 404),
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
def test_every_refusal_is_json_of_deepls_shape(api: TestClient, verb: str, path: str, given: dict[str, Any], status: int) -> None:
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
def test_a_text_that_is_too_long_is_refused_in_one_sentence(api: TestClient, path: str, given: dict[str, Any], most: str) -> None:
    answer = api.post(path, json=given)
    assert answer.status_code == 413, answer.text[:300]
    assert f"A text has more than {most} characters. Send it in parts, or as a document." in answer.text


def test_deepls_sentence_for_a_language_that_nothing_translates_to(api: TestClient) -> None:
    for target in ("ZH-HANT", "TLH"):
        answer = api.post("/v2/translate", json={"text": [SENTENCE], "source_lang": "EN", "target_lang": target})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("Value for 'target_lang' not supported.")


def test_deepls_sentence_for_a_language_that_nothing_translates_from(api: TestClient) -> None:
    wish = {"text": [SENTENCE], "source_lang": "XX", "target_lang": "ZH"}
    answer = api.post("/v2/translate", json=wish)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Value for 'source_lang' not supported.")
    unlikely = api.post("/v2/translate", json=wish | {"source_lang": "DE"}).json()["message"]
    assert unlikely == "Nothing here translates from de to zh. Add a base with `tailormt base add`, or make a project.", (
        "both languages are known, but not together"
    )


def test_a_translation_memory_that_is_named_is_refused(api: TestClient) -> None:
    assert api.get("/v3/translation_memories").json() == {"translation_memories": [], "total_count": 0}
    for verb, path in (("get", "translation_memories"), ("post", "style_rules"), ("delete", "style_rules/1")):
        assert api.request(verb, f"/cat/9/v3/{path}").json() == {"message": "There is no project 9: it may have been deleted."}
    named = {"source_lang": "EN", "target_lang": "ZH", "translation_memory_id": "a74d88fb"}
    for answer in (
        api.post("/v2/translate", json=named | {"text": [SENTENCE]}),
        api.post("/v2/document", data=named, files={"file": ("a.txt", b"Rain.")}),
    ):
        assert answer.status_code == 404
        assert answer.json()["message"].startswith("There is no translation memory a74d88fb.")


def test_characters_and_model_are_told_where_they_are_asked_for(api: TestClient) -> None:
    wish: dict[str, Any] = {"text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH"}

    def told(**more: Any) -> set[str]:
        (translation,) = api.post("/v2/translate", json=wish | more).json()["translations"]
        return set(translation)

    assert told() == {"detected_source_language", "text", "billed_characters"}
    assert "billed_characters" not in told(show_billed_characters=False)
    for model, used in (("quality_optimized",) * 2, ("latency_optimized",) * 2, ("prefer_quality_optimized", "quality_optimized")):
        (translation,) = api.post("/v2/translate", json=wish | {"model_type": model}).json()["translations"]
        assert translation["model_type_used"] == used
    refused = api.post("/v2/translate", json=wish | {"model_type": "bogus"})
    assert (refused.status_code, "latency_optimized" in refused.json()["message"]) == (400, True)


def test_a_glossary_needs_the_source_language_and_has_to_be_there(api: TestClient, store: Store, tmp_path: Path) -> None:
    pair = {"name": "Ours", "source_lang": "en", "target_lang": "zh", "entries": "rain\t雨"}
    glossary = api.post("/v2/glossaries", json=pair).json()["glossary_id"]
    (tmp_path / "style.zip").write_bytes(b"")
    row = store.plugins.create(1, "Style", method="lhuc", path=str(tmp_path / "style.zip"))
    (style,) = api.get("/v3/style_rules").json()["style_rules"]

    def answers(**more: Any) -> list[Any]:
        wish = {"target_lang": "ZH", **more}
        paper = {"file": ("a.txt", b"Rain.")}
        return [api.post("/v2/translate", json={"text": [SENTENCE], **wish}), api.post("/v2/document", data=wish, files=paper)]

    for answer in answers(glossary_id=glossary):
        assert (answer.status_code, answer.json()["message"].startswith("source_lang")) == (400, True)
    for answer in answers(glossary_id="nope", source_lang="EN"):
        assert (answer.status_code, answer.json()) == (404, {"message": "There is no glossary nope."})
    at_plugin = api.post(
        f"/cat/1/{row.id}/v2/translate", json={"text": [SENTENCE], "glossary_id": "nope", "source_lang": "EN", "target_lang": "ZH"}
    )
    assert at_plugin.status_code == 404, "a plugin in the address does not hide that there is no such glossary"
    for number in (glossary, "style", str(row.id), style["style_id"]):
        assert [response.status_code for response in answers(glossary_id=number, source_lang="EN")] == [200, 200], number


@pytest.mark.parametrize("place", ["999", "1/nope", "1/999", "nobody"])
def test_an_address_of_a_project_or_plugin_that_there_is_not_is_404(api: TestClient, place: str) -> None:
    for path in (
        "v2/usage", "v2/languages", "v2/languages?type=target", "v2/glossaries", "v2/glossaries/x", "v2/glossary-language-pairs",
        "v3/glossaries", "v3/style_rules", "v3/translation_memories", "languages",
    ):  # fmt: skip
        answer = api.get(f"/cat/{place}/{path}")
        (sentence,) = answer.json().values()
        assert (answer.status_code, sentence[:11]) == (404, "There is no"), (path, sentence)
        assert "project" in sentence or "plugin" in sentence, (path, sentence)
    for path in ("1/v2/usage", "Lu%20Xun/v2/usage", "1/base/v2/usage", "1/base/v2/languages"):
        assert api.get(f"/cat/{path}").status_code == 200


def test_plugins_are_style_rules_to_read(api: TestClient, store: Store, tmp_path: Path) -> None:
    (tmp_path / "style.zip").write_bytes(b"")
    rows = [store.plugins.create(1, f"Style {n}", method="lhuc", path=str(tmp_path / "style.zip")) for n in range(12)]
    here = "/cat/1/v3/style_rules"
    rules = api.get(here).json()["style_rules"]
    assert {rule["name"] for rule in rules} == {row.name for row in rows}
    assert "configured_rules" not in rules[0]
    assert len(api.get(here, params={"page": 0}).json()["style_rules"]) == 10
    assert len(api.get(here, params={"page": 1}).json()["style_rules"]) == 2
    assert api.get(here, params={"page": 2, "page_size": 6}).json() == {"style_rules": []}, "clients stop there"
    rule = api.get(f"{here}/{rules[0]['style_id']}").json()
    assert rule == rules[0] | {"configured_rules": {}, "custom_instructions": []}
    assert api.get(here, params={"detailed": "true"}).json()["style_rules"][0] == rule
    refused = api.patch(f"{here}/{rules[0]['style_id']}", json={"name": "Other"})
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")


def test_a_document_that_is_not_translated_yet_is_503(api: TestClient, store: Store) -> None:
    data = {"source_lang": "EN", "target_lang": "ZH"}
    sent = api.post("/v2/document", data=data, files={"file": ("a.txt", b"Rain.")}).json()
    address, credentials = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    assert api.post(address, json=credentials).json()["status"] == "queued"
    early = api.post(f"{address}/result", json=credentials)
    assert (early.status_code, set(early.json())) == (503, {"message"})
    assert int(early.headers["Retry-After"]) > 0
    store.jobs.cancel(store.jobs.list()[0].id)
    never = api.post(f"{address}/result", json=credentials)
    assert never.status_code == 404, "asking again would not help"
    assert "cancelled" in never.json()["message"]


def test_a_file_that_is_no_document_is_refused_in_deepls_words(api: TestClient) -> None:
    for name, content in (("a.invalid", b"Rain."), ("a.docx", b"PK no archive")):
        answer = api.post("/v2/document", data={"target_lang": "ZH"}, files={"file": (name, content)})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("Invalid file. a.")


def test_formality_of_documents_is_that_of_texts(api: TestClient) -> None:
    for formality, words in (("more", "'formality' is not supported for given 'target_lang'"), ("rude", "formality")):
        answer = api.post("/v2/document", data={"target_lang": "ZH", "formality": formality}, files={"file": ("a.txt", b"Rain.")})
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
        assert {language["language"] for language in api.get(f"/v2/languages?type={side}", headers=headers).json()} >= {"ZH"}
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
        assert code in {language["language"] for language in api.get(f"{here}/languages?type={side}", headers=headers).json()}
    pairs = api.get(f"{here}/glossary-language-pairs", headers=headers).json()["supported_languages"]
    assert {"source_lang": "en", "target_lang": "zh"} in pairs
    wish = {"name": "weblate:1:EN:ZH:0", "source_lang": "EN", "target_lang": "ZH", "entries": "rain\t雨", "entries_format": "tsv"}
    glossary = api.post(f"{here}/glossaries", json=wish, headers=headers).json()
    (listed,) = api.get(f"{here}/glossaries", headers=headers).json()["glossaries"]
    assert (listed["name"], listed["glossary_id"]) == (wish["name"], glossary["glossary_id"])
    texts: dict[str, Any] = {
        "text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH-HANS", "formality": "default", "tag_handling": "xml",
        "ignore_tags": ["x"], "glossary_id": glossary["glossary_id"],
    }  # fmt: skip
    assert api.post(f"{here}/translate", json=texts, headers=headers).status_code == 200
    assert api.delete(f"{here}/glossaries/{glossary['glossary_id']}", headers=headers).status_code == 204


def test_weblates_libretranslate_service(api: TestClient, store: Store) -> None:
    """As weblate/machinery/libretranslate.py of WeblateOrg/weblate (19117864) asks: the languages, then lists of texts with a
    key, or with none where none is set. A project of other languages refuses the trial from English to German.
    """
    headers = {"Accept": "application/json; charset=utf-8", "Referer": "https://weblate.example.org"}
    assert {"en", "zh"} <= {language["code"] for language in api.get("/cat/1/languages", headers=headers).json()}
    secret = store.tokens.create("CAT", ["translate"])[1]
    for api_key in (secret, ""):
        wish = {"api_key": api_key, "q": [SENTENCE, "Rain."], "source": "en", "target": "zh"}
        answer = api.post("/cat/1/translate", json=wish, headers=headers)
        assert answer.json() == {"translatedText": [SENTENCE, "Rain."]}
    trial = api.post("/cat/1/translate", json=wish | {"q": ["test"], "target": "de"}, headers=headers)
    assert trial.status_code == 400
    assert isinstance(trial.json()["error"], str)


def test_omegats_libretranslate_plugin(api: TestClient) -> None:
    """As LibreTranslate.java of omegat-org/omegat-libre-translate asks, at the address that it was given: a GET with q, source and
    target (12bd2afb), in a later version a POST with them as a form.
    """
    fields = {"q": "<g0>Rain</g0> stopped<x1/>.", "source": "en", "target": "zh"}
    for answer in (api.get("/cat/1/base/translate", params=fields), api.post("/cat/1/base/translate", data=fields)):
        assert answer.json() == {"translatedText": fields["q"]}


def test_omegats_deepl_plugin(api: TestClient, store: Store) -> None:
    """As DeepLTranslate.java of omegat-org/deepl-connector-plugin (20764c36) asks: a form with the target's region, and the first
    "text" of the answer is read as the translation. Its address is DeepL's own; this is for whoever builds it with another.
    """
    form = {"text": "Rain stopped.", "target_lang": "ZH-CN", "source_lang": "EN", "split_sentences": "0"}
    answer = api.post("/cat/1/v2/translate", data=form, headers=key(store))
    assert answer.status_code == 200
    assert re.findall(r'"text"\s*:\s*"((?:\\.|[^\\"])*)"', answer.text) == ["Rain stopped."]


def test_okapis_deepl_connector(api: TestClient, store: Store) -> None:
    """As DeepLv1Connector.java of Okapi asks: a form with up to fifty texts, the key among them, and inline codes as letters. Its
    address is DeepL's own (/v1); this is for whoever sends it here.
    """
    secret = store.tokens.create("Okapi", ["translate"])[1]
    texts = ["Press <g1>the door</g1>.", "Wait<x2/> &amp; see.", "A <b3/>cut<e4/> code."]
    form = {"text": texts, "auth_key": secret, "split_sentences": "0", "preserve_formatting": "1", "source_lang": "EN",
            "target_lang": "ZH", "tag_handling": "xml"}  # fmt: skip
    answer = api.post("/v2/translate", data=form, headers={"Accept": "application/json"})
    assert [translation["text"] for translation in answer.json()["translations"]] == texts


def test_deepls_library_tells_that_the_quota_is_used_up(api: TestClient, store: Store) -> None:
    deepl = pytest.importorskip("deepl")
    translator = deepl.Translator("any")
    answer = api.post(
        "/v2/translate", json={"text": [SENTENCE], "source_lang": "EN", "target_lang": "ZH"}, headers=key(store, quota=1)
    )
    with pytest.raises(deepl.QuotaExceededException):
        translator._raise_for_status(answer.status_code, answer.text, answer.json())


def test_documents_are_counted_when_they_are_queued(api: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, data = key(store, quota=8), {"source_lang": "EN", "target_lang": "ZH"}

    def send() -> int:
        return int(api.post("/v2/document", data=data, files={"file": ("a.txt", b"Rain.")}, headers=headers).status_code)

    with monkeypatch.context() as patch:
        patch.setattr("engine.store.queue.Jobs.enqueue", lambda *_, **__: 1 / 0)
        assert send() == 500
    assert api.get("/v2/usage", headers=headers).json()["character_count"] == 0, "given back"
    assert [send(), send()] == [200, 456]
    assert len(store.jobs.list()) == 1
