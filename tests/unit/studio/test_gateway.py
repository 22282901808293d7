"""The door by itself: signing in and out, what comes from other sites, how often, how large, accounts, members, tokens, the log."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from fastapi import FastAPI
from sqlalchemy import text
from starlette.testclient import TestClient

from engine.core.actor import NOBODY, THIS_MACHINE, Actor, Forbidden, act_as
from engine.core.settings import Settings
from engine.errors import InputError
from engine.store import Store
from engine.store.passwords import hashed, matches, worn
from engine.store.row_access import OPEN, belongs
from engine.store.tables import Base
from studio.api.account_routes import _inside, add_door_routes, check_door
from studio.api.dispatch import is_api
from studio.api.errors import shaped
from studio.auth.gateway import Gateway
from studio.auth.gradio_endpoints import closed
from studio.auth.identity import is_loopback, sign_in_needed
from studio.auth.rate_limit import RateLimit
from studio.services.service import Service

PASSWORD = "a long enough password"
HOST = "http://127.0.0.1:7860"


def door(home: Path, *, url: str = HOST, address: str = "127.0.0.1", **changes: Any) -> TestClient:
    """The gate and its pages, without the studio's."""
    service = Service(Settings(home=str(home), device="cpu", **{"sign_in": "on", **changes}))
    app = FastAPI()
    app.add_middleware(
        Gateway, settings=service.settings, store=service.store, uploads=home / "uploads", is_api=is_api, error_response=shaped
    )
    add_door_routes(app, service)

    @app.get("/")
    def first() -> dict[str, str]:
        return {"who": service.store.access().who}

    @app.post("/act")
    def act() -> dict[str, str]:
        return {"who": service.store.access().who}

    return TestClient(app, base_url=url, client=(address, 5000), follow_redirects=False, headers={"Origin": url})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    result = Store(f"sqlite:///{tmp_path / 'tailor.db'}")
    for name, role in (("Ada", "admin"), ("Ann", "member"), ("Vic", "viewer")):
        result.accounts.create(name, PASSWORD, role)
    return result


def signed(client: TestClient, name: str = "Ann") -> TestClient:
    assert client.post("/sign-in", data={"name": name, "password": PASSWORD}).status_code == 303
    return client


def acts(store: Store) -> list[tuple[str, str]]:
    return [(row.who, row.action) for row in store.audit.list()]


# -- sessions


def test_a_session_begins_and_ends(tmp_path: Path, store: Store) -> None:
    client = door(tmp_path)
    page = client.get("/", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (303, "/sign-in")
    assert client.get("/").status_code == 403
    answer = client.post("/sign-in", data={"name": " ann ", "password": PASSWORD, "next": "/samples?project=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/samples?project=1")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    assert client.get("/").json() == {"who": "Ann"}
    secret = client.cookies["tailormt_session"]
    with store.read() as session:
        assert secret not in repr(session.execute(text("SELECT * FROM sign_in")).all())
    assert client.post("/sign-out").status_code == 303
    assert client.get("/", cookies={"tailormt_session": secret}).status_code == 403, "the session is over, not the cookie"
    assert acts(store)[:2] == [("Ann", "sign out"), ("Ann", "sign in")]


def test_neither_the_page_nor_the_language_that_was_asked_for_is_lost_on_the_way(tmp_path: Path, store: Store) -> None:
    client = door(tmp_path)
    moved = client.get("/train?project=1&lang=zh", headers={"accept": "text/html"}).headers["location"]
    query = parse_qs(moved.partition("?")[2])
    assert query == {"next": ["/train?project=1&lang=zh"], "lang": ["zh"]}
    page = client.get(f"/sign-in?{urlencode({'next': '/train?project=1'})}").text
    switch = html.unescape(re.findall(r'href="(\?[^"]*lang=zh)"', page)[0])
    assert parse_qs(switch[1:]) == {"next": ["/train?project=1"], "lang": ["zh"]}
    assert 'name="next" value="/train?project=1"' in client.get(f"/sign-in{switch}").text


def test_over_https_the_cookie_stays_there(tmp_path: Path, store: Store) -> None:
    client = door(tmp_path, url="https://studio.example")
    cookie = client.post("/sign-in", data={"name": "Ann", "password": PASSWORD}).headers["set-cookie"]
    assert cookie.startswith("__Host-tailormt_session=")
    assert "Secure" in cookie


def test_a_session_ends_with_the_password_and_with_the_account(tmp_path: Path, store: Store) -> None:
    first, other = signed(door(tmp_path)), signed(door(tmp_path))
    done = first.post("/account/password", data={"now": PASSWORD, "new": "another long password"})
    assert "Your password has been changed." in done.text
    assert first.get("/").status_code == 200
    assert other.get("/").status_code == 403
    assert "current password is wrong" in first.post("/account/password", data={"now": PASSWORD, "new": PASSWORD}).text
    store.accounts.change(store.accounts.named("Ann").id, active=False)
    assert first.get("/").status_code == 403
    assert store.accounts.signed("Ann", "another long password") is None


def test_wrong_passwords_are_slowed_down(tmp_path: Path, store: Store) -> None:
    client = door(tmp_path, sign_in_attempts=3)
    wrong = {"name": "Ann", "password": "not the password"}
    texts = [client.post("/sign-in", data=wrong) for _ in range(5)]
    assert [answer.status_code for answer in texts] == [401, 401, 401, 429, 429]
    assert int(texts[-1].headers["retry-after"]) > 0
    assert client.post("/sign-in", data={**wrong, "password": PASSWORD}).status_code == 429
    elsewhere = door(tmp_path, sign_in_attempts=3, address="10.0.0.9", url="http://studio.example")
    assert elsewhere.post("/sign-in", data={**wrong, "password": PASSWORD}).status_code == 303
    assert (
        client.post("/sign-in", data={"name": "Nobody", "password": "x" * 12}).text
        == client.post("/sign-in", data={"name": "Nobody", "password": "x" * 12}).text
    )
    assert ("nobody", "sign in refused") in acts(store)
    assert "not the password" not in repr(store.audit.list())


@pytest.mark.parametrize(
    "place", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb", ""]
)
def test_nobody_is_led_elsewhere(place: str) -> None:
    assert _inside(place) == "/"


def test_the_pages_of_the_door_run_no_script(tmp_path: Path, store: Store) -> None:
    answer = door(tmp_path).get("/sign-in")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    style = answer.text.partition("<style>")[2].partition("</style>")[0]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy
    for sign in ("<script", "style=", " onclick=", " onchange="):
        assert sign not in answer.text


# -- other sites, hosts, sizes, rates


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "", "Sec-Fetch-Site": "cross-site"}, {"Origin": "", "Sec-Fetch-Site": "same-site"}, {"Origin": ""},
])  # fmt: skip
def test_a_page_of_another_site_changes_nothing(tmp_path: Path, store: Store, headers: dict[str, str]) -> None:
    client = signed(door(tmp_path))
    assert client.post("/act", headers=headers).status_code == 403
    assert client.post("/account/tokens", data={"name": "x", "scope": "read"}, headers=headers).status_code == 403
    assert store.tokens.list() == []
    assert client.post("/act").json() == {"who": "Ann"}
    assert client.post("/act", headers={"Origin": "", "Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_one_person_on_a_machine_notices_nothing(tmp_path: Path) -> None:
    client = door(tmp_path, sign_in="auto")
    assert client.get("/").json() == {"who": "this machine"}
    assert client.post("/act", headers={"Origin": ""}).status_code == 200
    assert client.get("/account").status_code == 404
    assert client.post("/act", headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/act", headers={"Origin": "", "Sec-Fetch-Site": "cross-site"}).status_code == 403
    # A name of another site that leads to this machine is not this machine's.
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert door(tmp_path, sign_in="off", url="http://proxied.example").get("/").status_code == 200


@pytest.mark.parametrize(("host", "sign_in", "needed"), [
    ("127.0.0.1", "auto", False), ("localhost", "auto", False), ("::1", "auto", False), ("0.0.0.0", "auto", True),
    ("192.168.1.5", "auto", True), ("127.0.0.1", "on", True), ("0.0.0.0", "off", False),
])  # fmt: skip
def test_people_sign_in_where_others_can_reach_the_studio(host: str, sign_in: str, needed: bool) -> None:
    assert sign_in_needed(Settings(host=host, sign_in=sign_in)) is needed
    assert is_loopback("127.0.0.1.evil.example") is False


def test_a_studio_without_accounts_does_not_open_to_others(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path), host="0.0.0.0")
    with pytest.raises(InputError, match=r"tailormt user add NAME --role admin.*--no-sign-in"):
        check_door(settings)
    check_door(settings.replace(sign_in="off"))
    check_door(settings.replace(host="127.0.0.1"))
    Store(settings.store_url).accounts.create("Ada", PASSWORD, "admin")
    check_door(settings)


def test_a_body_is_bounded_whatever_it_says(tmp_path: Path, store: Store) -> None:
    client = signed(door(tmp_path, max_request_mib=1))
    assert client.post("/act", headers={"Content-Length": str(2 << 20)}).status_code == 413
    for kind in ("application/x-www-form-urlencoded", "Application/X-WWW-Form-URLencoded; charset=utf-8"):
        answer = door(tmp_path).post("/sign-in", content="name=" + "%41" * 30_000, headers={"Content-Type": kind})
        assert answer.status_code == 413, "anybody may ask for this page, and decoding holds up others"


def test_programs_are_slowed_down(tmp_path: Path, store: Store) -> None:
    client = door(tmp_path, api_rate=3)
    texts = [client.get("/api/v1/projects", headers={"Authorization": "Bearer tmt_x"}) for _ in range(5)]
    assert [answer.status_code for answer in texts] == [404, 404, 404, 429, 429]  # there is no interface behind this door
    assert texts[-1].json()["error"]["code"] == "busy"
    assert all(door(tmp_path, sign_in="auto", api_rate=1).get("/api/v1/projects").status_code == 404 for _ in range(4))


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    rates = RateLimit(2, 10.0, lambda: now[0])
    assert [rates.take("a"), rates.take("a")] == [0.0, 0.0]
    assert rates.take("a") == pytest.approx(5.0)
    assert rates.take("b") == 0.0
    now[0] = 5.0
    assert rates.wait("a") == 0.0
    assert rates.take("a") == 0.0
    assert rates.take("a") > 0
    rates.forget("a")
    assert rates.take("a") == 0.0


def test_addresses_that_no_page_needs_are_closed() -> None:
    for path in ("/gradio_api/proxy=http://a", "/gradio_api/file=https://a/b", "/gradio_api/call/x", "/gradio_api/deep_link",
                 "/gradio_api/vibe-edit", "/login", "/monitoring/summary", "/gradio_api/dev/reload", "/gradio_api"):  # fmt: skip
        assert closed(path), path
    for path in ("/gradio_api/queue/join", "/gradio_api/file=/tmp/a b.txt", "/gradio_api/upload", "/samples", "/config", "/login2"):
        assert not closed(path), path


# -- accounts, members, tokens


def test_accounts_are_for_admins(tmp_path: Path, store: Store) -> None:
    ann, ada = signed(door(tmp_path)), signed(door(tmp_path), "Ada")
    data = {"name": "New", "password": PASSWORD, "role": "admin"}
    number = store.accounts.named("Ann").id
    for path in ("accounts", f"accounts/{number}/role", f"accounts/{number}/password", f"accounts/{number}/delete"):
        assert ann.post(f"/admin/{path}", data=data).status_code == 404
    assert ann.get("/admin").status_code == 404
    assert "Ann" in ada.get("/admin").text
    assert ada.post("/admin/accounts", data=data).status_code == 303
    assert store.accounts.named("new").role == "admin"
    assert "There is already an account" in ada.post("/admin/accounts", data=data).text
    assert ("Ada", "account added") in acts(store)
    store.accounts.delete(store.accounts.named("New").id)
    last = store.accounts.named("Ada").id
    for path, form in (("role", {"role": "member"}), ("active", {"active": "no"}), ("delete", {})):
        assert "last admin" in ada.post(f"/admin/accounts/{last}/{path}", data=form).text


def test_owners_choose_members(tmp_path: Path, store: Store) -> None:
    user = store.accounts.named("Ann").id
    with act_as(Actor("Ann", "member", user)):
        project = store.projects.create("Hers", "en", "zh", "base")
    ann, vic = signed(door(tmp_path)), signed(door(tmp_path), "Vic")
    assert vic.get(f"/members/{project.id}").status_code == 404
    assert ann.post(f"/members/{project.id}/add", data={"name": "vic", "role": "viewer"}).status_code == 303
    assert "Hers" in vic.get(f"/members/{project.id}").text
    assert vic.post(f"/members/{project.id}/role", data={"user": user, "role": "viewer"}).status_code == 403
    assert "no account" in ann.post(f"/members/{project.id}/add", data={"name": "Zoe"}).text
    assert ann.post(f"/members/{project.id}/remove", data={"user": store.accounts.named("Vic").id}).status_code == 303
    assert vic.get(f"/members/{project.id}").status_code == 404
    assert ("Ann", "member added") in acts(store)


def test_a_token_may_no_more_than_its_account(tmp_path: Path, store: Store) -> None:
    vic, ann = signed(door(tmp_path), "Vic"), signed(door(tmp_path))
    assert "no more than its account" in vic.post("/account/tokens", data={"name": "x", "scope": ["write"]}).text
    assert "no more than its account" in ann.post("/account/tokens", data={"name": "x", "scope": ["admin"]}).text
    page = ann.post("/account/tokens", data={"name": "ci", "scope": ["read", "write"], "days": "7"})
    row = store.tokens.list()[0]
    assert (row.name, row.scopes, row.user_id) == ("ci", "read,write", store.accounts.named("Ann").id)
    assert row.expires is not None
    assert row.shown in page.text
    assert row.shown not in ann.get("/").text
    assert vic.post(f"/account/tokens/{row.id}/revoke").status_code == 404
    assert ann.post(f"/account/tokens/{row.id}/revoke").status_code == 303
    assert store.tokens.list() == []


def test_a_token_runs_out(store: Store) -> None:
    import datetime

    from sqlalchemy import update

    from engine.store.tokens import ApiToken

    row, secret = store.tokens.create("x", ["read"], days=1)
    assert store.tokens.find(secret) is not None
    with store.write() as session:
        before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
        session.execute(update(ApiToken).where(ApiToken.id == row.id).values(expires=before))
    assert store.tokens.find(secret) is None
    with pytest.raises(InputError, match="no project 9"):
        store.tokens.create("x", ["read"], project_id=9)


def test_passwords_are_argon2_hashes_with_salt() -> None:
    selected = hashed("päss wörd 密码")
    assert selected.startswith("$argon2id$")
    assert selected != hashed("päss wörd 密码")
    assert matches(selected, "päss wörd 密码")
    assert not matches(selected, "pass word")
    assert not matches("", "nobody has this password")
    assert not matches("no hash", "x")
    assert not worn(selected)


# -- the store itself


def test_every_table_is_known_to_the_guard() -> None:
    """A table hangs on a project by a foreign key that is removed with it, or it is named here with the reason."""
    closed_ones = {"app_user", "api_token", "sign_in", "audit", "job_turn"}  # accounts' own, and what only the program reads
    free = {name for name in Base.metadata.tables if name != "project" and belongs(name) is None}
    assert free - set(OPEN) == closed_ones


def test_nobody_and_strangers_change_nothing(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)
    for who in (NOBODY, Actor("Ann", "member", store.accounts.named("Ann").id)):
        with act_as(who):
            assert store.projects.list() == store.jobs.list() == store.audit.list() == []
            for act in (lambda: store.jobs.cancel(job.id), lambda: store.projects.delete(project.id)):
                with pytest.raises(InputError, match="may have been deleted"):
                    act()
            for act in (lambda: store.jobs.enqueue("prepare", {}, project_id=project.id), lambda: store.tokens.create("x"),
                        lambda: store.plugins.create(project.id, "x", method="m", path="p")):  # fmt: skip
                with pytest.raises(Forbidden):
                    act()
    with act_as(NOBODY), pytest.raises(Forbidden):
        store.projects.create("b", "en", "zh", "base")
    assert store.jobs.get(job.id).state == "queued"


def test_a_token_of_one_project_sees_no_other(store: Store) -> None:
    first, second = (store.projects.create(name, "en", "zh", "base") for name in "ab")
    with act_as(Actor("token", project=first.id)):
        assert store.projects.list() == [first]
        with pytest.raises(InputError):
            store.projects.get(second.id)
        with pytest.raises(Forbidden):
            store.projects.create("c", "en", "zh", "base")
        store.jobs.enqueue("prepare", {}, project_id=first.id)


def test_the_log_can_only_grow(store: Store) -> None:
    store.projects.create("a", "en", "zh", "base")
    store.audit.note(THIS_MACHINE, "export", project_id=1, target=1, detail="/download/plugins/1")
    before = store.audit.list()
    assert [row.action for row in before[:2]] == ["export", "project added"]
    for statement in ("DELETE FROM audit", "UPDATE audit SET who = 'x'"):
        with pytest.raises(Exception, match="append only"), store.system() as session:
            session.execute(text(statement))
    assert store.audit.list() == before
    store.projects.delete(1)
    assert store.audit.list(project_id=1)[0].action == "project deleted"
    assert [row.action for row in store.audit.list(action="project")] == ["project deleted", "project added"]


def test_the_command_line_makes_accounts(tailormt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    assert "--password-stdin" in tailormt("user", "add", "Ada", "--role", "admin").sentence
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
    assert tailormt("user", "add", "Ada", "--role", "admin", "--password-stdin").code == 0
    assert "Ada" in tailormt("user", "list").out
    assert "last admin" in tailormt("user", "close", "Ada").sentence
    assert "account added" in tailormt("audit").out
    assert tailormt("token", "create", "ci", "--user", "ada", "--scope", "read", "--days", "3").code == 0
    assert "token added" in tailormt("audit", "--action", "token").out
    assert "no date" in tailormt("audit", "--since", "yesterday").sentence


def test_who_cancelled_and_resumed_a_job_is_in_the_log(store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)
    with act_as(Actor("Ann", address="10.0.0.7")):
        store.jobs.cancel(job.id)
        store.jobs.cancel(job.id)  # it has ended: nothing is done, and nothing noted
        store.jobs.resume(job.id)
    noted = [(row.who, row.address, row.action, row.project_id, row.target, row.detail) for row in store.audit.list(action="job ")]
    subject = (project.id, str(job.id), "prepare")
    assert noted[:2] == [("Ann", "10.0.0.7", "job resumed", *subject), ("Ann", "10.0.0.7", "job cancelled", *subject)]
    assert [row[2] for row in noted[2:]] == ["job added"]


def test_a_port_that_is_taken_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    from studio import app

    started: list[str] = []
    monkeypatch.setattr(app, "create_app", lambda settings: started.append("app"))
    monkeypatch.setattr(app, "start_background_worker", lambda settings: started.append("worker"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"Port {port} of 127.0.0.1 cannot be used"):
            app.launch(Settings(home=str(tmp_path), port=port))
    assert not started
    app.bound_socket("127.0.0.1", port).close()
