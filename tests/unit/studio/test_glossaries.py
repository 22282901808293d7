"""Terminology through the interfaces: DeepL's glossaries, a project's terms in translations and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from test_api import asked, said

import studio
from engine.core.actor import Actor, act_as
from engine.errors import InputError, NotFoundError
from engine.store import ProjectRow, Store
from studio.services.glossaries import Dictionary, Glossaries, parse_entries
from tests.bases import EN_ZH

LINE = "The committee will publish its report tomorrow."
TERM = "理事会"


@pytest.fixture
def api(tmp_path: Path) -> TestClient:
    return asked(tmp_path)


@pytest.fixture
def project(store: Store) -> ProjectRow:
    return store.projects.create("Reports", "en", "zh", str(EN_ZH))


def made(api: TestClient, **more: Any) -> dict[str, Any]:
    wish = {"name": "Ours", "source_lang": "en", "target_lang": "zh", "entries": f"committee\t{TERM}\n#1\t第一", **more}
    answer = api.post("/v2/glossaries", json={"entries_format": "tsv", **wish})
    assert answer.status_code == 201, answer.text
    return answer.json()  # type: ignore[no-any-return]


def test_a_glossary_is_made_listed_read_and_deleted(api: TestClient) -> None:
    glossary = made(api)
    assert (glossary["name"], glossary["source_lang"], glossary["target_lang"]) == ("Ours", "en", "zh")
    assert (glossary["entry_count"], glossary["ready"]) == (2, True)
    address = f"/v2/glossaries/{glossary['glossary_id']}"
    assert api.get("/v2/glossaries").json() == {"glossaries": [glossary]}
    assert api.get(address).json() == glossary
    entries = api.get(f"{address}/entries", headers={"Accept": "text/tab-separated-values"})
    assert entries.text == f"committee\t{TERM}\n#1\t第一"
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404
    assert api.delete(address).json() == {"message": f"There is no glossary {glossary['glossary_id']}."}


def test_entries_as_csv_and_in_a_form(api: TestClient) -> None:
    form = {"name": "CSV", "source_lang": "EN", "target_lang": "ZH", "entries": 'rain,"雨，大"\n', "entries_format": "csv"}
    answer = api.post("/v2/glossaries", data=form)
    assert answer.json()["entry_count"] == 1
    assert api.get(f"/v2/glossaries/{answer.json()['glossary_id']}/entries").text == "rain\t雨，大"


@pytest.mark.parametrize(
    ("text", "format", "why"),
    [
        ("rain", "tsv", "line 1: give a source term and a target term"),
        ("a\tb\tc", "tsv", "line 1: give a source term"),
        ("a\tb\na\tc", "tsv", "line 2: 'a' has a target term already"),
        ("\n \n", "tsv", "at least one entry"),
        ('a,"b', "csv", "not valid CSV"),
        ("a\tb", "tbx", "must be tsv or csv"),
    ],
)
def test_entries_that_cannot_be_are_refused_with_their_line(text: str, format: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_entries(text, format)


def test_a_translation_uses_the_terms_of_the_glossary_that_it_names(api: TestClient, project: ProjectRow) -> None:
    wish = {"text": [LINE, "It is raining."], "source_lang": "EN", "target_lang": "ZH"}
    without = [translation["text"] for translation in api.post("/v2/translate", json=wish).json()["translations"]]
    number = made(api)["glossary_id"]
    within = [
        translation["text"]
        for translation in api.post("/v2/translate", json={**wish, "glossary_id": number}).json()["translations"]
    ]
    assert TERM not in without[0]
    assert TERM in within[0]
    assert within[1] == without[1]
    back = api.post("/v2/translate", json={"text": ["下雨。"], "source_lang": "ZH", "target_lang": "EN", "glossary_id": number})
    assert back.json() == {"message": "The glossary Ours has no terms from zh to en."}
    gone = api.post("/v2/translate", json={**wish, "glossary_id": "0f6a9d61-0000-4000-8000-000000000000"})
    assert gone.status_code == 404


def test_glossaries_of_several_pairs_of_languages(api: TestClient) -> None:
    pairs = [
        {"source_lang": "en", "target_lang": "zh", "entries": "rain\t雨", "entries_format": "tsv"},
        {"source_lang": "zh", "target_lang": "en", "entries": "雨\train", "entries_format": "tsv"},
    ]
    glossary = api.post("/v3/glossaries", json={"name": "Both", "dictionaries": pairs}).json()
    assert [dictionary["entry_count"] for dictionary in glossary["dictionaries"]] == [1, 1]
    address = f"/v3/glossaries/{glossary['glossary_id']}"
    assert api.get(address).json() == glossary
    assert api.get("/v3/glossaries").json() == {"glossaries": [glossary]}
    assert api.get("/v2/glossaries").json() == {"glossaries": []}
    more = {"source_lang": "en", "target_lang": "zh", "entries": "rain\t大雨\nsnow\t雪", "entries_format": "tsv"}
    assert api.patch(address, json={"name": "More", "dictionaries": [more]}).json()["name"] == "More"
    (entries,) = api.get(f"{address}/entries", params={"source_lang": "en", "target_lang": "zh"}).json()["dictionaries"]
    assert (entries["entries"], entries["entries_format"]) == ("rain\t大雨\nsnow\t雪", "tsv")
    assert api.put(f"{address}/dictionaries", json=pairs[0]).json()["entry_count"] == 1
    way = {"source_lang": "zh", "target_lang": "en"}
    assert api.delete(f"{address}/dictionaries", params=way).status_code == 204
    assert api.delete(f"{address}/dictionaries", params=way).status_code == 404
    last = api.delete(f"{address}/dictionaries", params={"source_lang": "en", "target_lang": "zh"})
    assert "only entries" in last.json()["message"]
    assert len(api.get(address).json()["dictionaries"]) == 1


def test_a_pair_of_languages_that_occurs_twice_loses_no_terms(api: TestClient) -> None:
    pairs = [
        {"source_lang": source, "target_lang": "zh", "entries": entries, "entries_format": "tsv"}
        for source, entries in (("en", "rain\t雨"), ("EN", "snow\t雪"))
    ]
    refused = api.post("/v3/glossaries", json={"name": "Twice", "dictionaries": pairs})
    assert (refused.status_code, "en to zh occur twice" in refused.json()["message"]) == (400, True)
    assert api.get("/v3/glossaries").json() == {"glossaries": []}
    glossary = api.post("/v3/glossaries", json={"name": "Once", "dictionaries": pairs[:1]}).json()
    address = f"/v3/glossaries/{glossary['glossary_id']}"
    assert api.patch(address, json={"dictionaries": pairs}).status_code == 400
    assert api.get(address).json() == glossary


def test_dictionaries_come_in_a_form_too(api: TestClient, project: ProjectRow) -> None:
    """As DeepLClient.java of DeepLcom/deepl-java and DeepLClient.cs of deepl-dotnet send them, which send no JSON here."""
    form = {"name": "Both"}
    for index, (source, target, entries) in enumerate((("en", "zh", "rain\t雨\nsnow\t雪"), ("zh", "en", "雨\train"))):
        form |= {
            f"dictionaries[{index}].source_lang": source,
            f"dictionaries[{index}].target_lang": target,
            f"dictionaries[{index}].entries": entries,
            f"dictionaries[{index}].entries_format": "tsv",
        }
    here = f"/cat/{project.id}/v3/glossaries"
    glossary = api.post(here, data=form).json()
    assert [dictionary["entry_count"] for dictionary in glossary["dictionaries"]] == [2, 1]
    address = f"{here}/{glossary['glossary_id']}"
    more = {"dictionaries[0].source_lang": "en", "dictionaries[0].target_lang": "zh",
            "dictionaries[0].entries": "rain,大雨\nfog,雾", "dictionaries[0].entries_format": "csv"}  # fmt: skip
    counts = {
        dictionary["source_lang"]: dictionary["entry_count"] for dictionary in api.patch(address, data=more).json()["dictionaries"]
    }
    assert counts == {"en": 3, "zh": 1}
    assert api.patch(address, data={"name": "Weather"}).json()["name"] == "Weather"
    replacement = {"source_lang": "en", "target_lang": "zh", "entries": "rain\t雨", "entries_format": "tsv"}
    assert api.put(f"{address}/dictionaries", data=replacement).json()["entry_count"] == 1
    gap = api.post(here, data={"name": "None", "dictionaries[7].source_lang": "en"})
    assert (gap.status_code, set(gap.json())) == (400, {"message"})


def test_a_glossary_is_seen_by_its_account_and_by_admins(api: TestClient) -> None:
    glossaries = Glossaries(api.app.state.deps.service)  # type: ignore[attr-defined]
    with act_as(Actor("ann", "member", user=1)):
        glossary = glossaries.create("Ann's", [Dictionary("en", "zh", {"rain": "雨"})])
        assert glossaries.list() == [glossary]
    with act_as(Actor("ben", "member", user=2)):
        assert glossaries.list() == []
        with pytest.raises(NotFoundError):
            glossaries.delete(glossary.id)
    assert glossaries.list() == [glossary]


def test_a_token_opens_the_glossaries_of_its_account_alone(tmp_path: Path, store: Store) -> None:
    api = asked(tmp_path, host="0.0.0.0")
    store.projects.create("Reports", "en", "zh", str(EN_ZH))
    scopes = ["read", "translate", "write"]
    ada, ann, ben, vic = (
        store.accounts.create(name, "a long enough password", role).id
        for name, role in (("Ada", "admin"), ("Ann", "member"), ("Ben", "member"), ("Vic", "viewer"))
    )
    secrets = {user: store.tokens.create("CAT", scopes, user_id=user)[1] for user in (ada, ann, ben, vic)}

    def by(user: int, verb: str, path: str, **request: Any) -> Any:
        return api.request(verb, path, headers={"Authorization": f"DeepL-Auth-Key {secrets[user]}"}, **request)

    pair = {"source_lang": "en", "target_lang": "zh", "entries": "rain\t雨"}
    answer = by(ann, "post", "/v2/glossaries", json={"name": "Ann's", **pair})
    assert answer.status_code == 201
    number = answer.json()["glossary_id"]
    assert by(ann, "get", f"/v2/glossaries/{number}").json() == answer.json()
    for version in ("v2", "v3"):
        for user, seen in ((ann, True), (ben, False), (vic, False), (ada, True)):
            numbers = [glossary["glossary_id"] for glossary in by(user, "get", f"/{version}/glossaries").json()["glossaries"]]
            assert numbers == ([number] if seen else [])
        for path in (number, f"{number}/entries"):
            assert by(ada, "get", f"/{version}/glossaries/{path}").status_code == 200
            assert by(ben, "get", f"/{version}/glossaries/{path}").status_code == 404
        assert by(ben, "delete", f"/{version}/glossaries/{number}").status_code == 404
        assert by(vic, "delete", f"/{version}/glossaries/{number}").status_code == 403
    address = f"/v3/glossaries/{number}"
    assert by(ben, "patch", address, json={"name": "Ben's"}).status_code == 404
    assert by(ben, "put", f"{address}/dictionaries", json=pair).status_code == 404
    assert by(ben, "delete", f"{address}/dictionaries", params=pair).status_code == 404
    wish = {"source_lang": "EN", "target_lang": "ZH", "glossary_id": number}
    assert by(ben, "post", "/v2/translate", json={"text": ["Rain."], **wish}).status_code == 404
    paper = {"file": ("a.txt", b"Rain.")}
    assert by(ben, "post", "/v2/document", data=wish, files=paper).status_code == 404
    assert by(vic, "post", "/v2/glossaries", json={"name": "Vic's", **pair}).status_code == 403
    assert by(ada, "patch", address, json={"name": "Renamed"}).json()["name"] == "Renamed"
    assert by(ann, "get", address).json()["name"] == "Renamed", "an admin's change leaves it with its account"
    assert by(ann, "delete", address).status_code == 204


def test_a_token_of_a_project_without_an_account_sees_what_such_tokens_made(tmp_path: Path, store: Store) -> None:
    api = asked(tmp_path, host="0.0.0.0")
    projects = [store.projects.create(name, "en", "zh", str(EN_ZH)) for name in ("One", "Two")]
    heads = [
        {"Authorization": f"Bearer {store.tokens.create('CAT', ['translate', 'write'], project_id=row.id)[1]}"} for row in projects
    ]
    wish = {"name": "One's", "source_lang": "en", "target_lang": "zh", "entries": "rain\t雨"}
    address = f"/v2/glossaries/{api.post('/v2/glossaries', json=wish, headers=heads[0]).json()['glossary_id']}"
    assert [api.get(address, headers=head).status_code for head in heads] == [200, 404]
    assert [api.delete(address, headers=head).status_code for head in reversed(heads)] == [404, 204]


def test_the_studio_asks_the_store_who_asks() -> None:
    """In a request `current_actor` is whoever runs the server, not the account; `store.access` knows both."""
    code = {path: path.read_text(encoding="utf-8") for path in Path(studio.__file__).parent.rglob("*.py")}
    assert [path.name for path, text in code.items() if "current_actor" in text] == []


def test_a_damaged_file_takes_no_other_glossary_with_it(api: TestClient) -> None:
    glossaries = Glossaries(api.app.state.deps.service)  # type: ignore[attr-defined]
    intact = glossaries.create("Whole", [Dictionary("en", "zh", {"rain": "雨"})])
    for text in ("{", "[]", '{"name": "No dictionaries"}', '{"name": "x", "dictionaries": [{"source": "en"}]}'):
        damaged = glossaries.create("Damaged", [Dictionary("en", "zh", {"snow": "雪"})])
        (glossaries.folder / f"{damaged.id}.json").write_text(text)
        assert glossaries.list() == [intact]
        assert api.get(f"/v3/glossaries/{damaged.id}").status_code == 404


def test_a_projects_terms_are_enforced_where_that_is_asked_for(
    api: TestClient, project: ProjectRow, store: Store, tmp_path: Path
) -> None:
    address = f"/api/v1/projects/{project.id}"
    api.put(f"{address}/terms", json={"text": f"committee = {TERM}\n"})
    wish = {"texts": [LINE], "project": str(project.id)}

    def text(**more: Any) -> str:
        answer: str = api.post("/api/v1/translate", json={**wish, **more}).json()["translations"][0]["text"]
        return answer

    assert TERM not in text()
    assert TERM in text(terminology=True)
    there = api.post("/api/v1/translate", json={**wish, "source": "zh", "target": "en", "texts": ["下雨。"], "terminology": True})
    assert there.status_code == 200, "the other direction has no terms"
    store.projects.delete(project.id)
    without = api.post("/api/v1/translate", json={"texts": [LINE], "source": "en", "target": "zh", "terminology": True})
    assert "terms belong to a project" in said(without, 400, "bad_input")


def test_a_comparison_enforces_a_projects_terms_and_says_so(api: TestClient, project: ProjectRow) -> None:
    address = f"/api/v1/projects/{project.id}"
    api.put(f"{address}/terms", json={"text": f"committee = {TERM}\n"})
    for enforced in (False, True):
        wish = {"texts": [LINE], "terminology": enforced}
        comparison = api.post(f"{address}/comparisons", json=wish).json()
        assert comparison["terminology"] is enforced
        assert (TERM in comparison["rows"][0]["vanilla"]) is enforced
        assert api.get(f"/api/v1/comparisons/{comparison['id']}").json()["terminology"] is enforced
        queued = api.post(f"{address}/comparisons/sheets", json=wish).json()
        assert queued["comparison"]["terminology"] is enforced
        sent = {"files": ("a.txt", LINE.encode())}
        queued = api.post(f"{address}/comparisons/files", files=sent, data={"terminology": str(enforced).lower()}).json()
        assert queued["comparison"]["terminology"] is enforced


def test_a_documents_job_has_the_terms(api: TestClient, project: ProjectRow, store: Store) -> None:
    address = f"/api/v1/projects/{project.id}"
    api.put(f"{address}/terms", json={"text": f"committee = {TERM}\n"})
    for enforced in (False, True):
        api.post(f"{address}/documents", files={"file": ("a.txt", LINE.encode())}, data={"terminology": str(enforced).lower()})
    with_terms, without = (job.arguments for job in store.jobs.list(project.id))
    assert with_terms["terms"] == f"committee = {TERM}\n"
    assert "terms" not in without
