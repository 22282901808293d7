"""Every check of a password is counted; names that look alike are refused; a second factor beside the password."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.store import Store
from engine.store.account_names import look
from engine.store.second_factor import STEP, SecondFactors, code_at
from tests.unit.studio.test_gateway import PASSWORD, door, signed, store

__all__ = ["store"]

KEY = base64.b32encode(b"12345678901234567890").decode()  # of RFC 6238, appendix B


@pytest.mark.parametrize(("seconds", "code"), [
    (59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037"),
    (20000000000, "353130"),
])  # fmt: skip
def test_codes_are_those_of_rfc_6238(seconds: int, code: str) -> None:
    assert code_at(KEY, seconds // 30) == code


def test_a_code_is_good_once_and_for_a_minute(store: Store) -> None:
    now = [1_000_000.0]
    factors, user = SecondFactors(store, lambda: now[0]), store.accounts.named("Ann").id
    assert factors.passes(user, ""), "none is set up"
    secret = factors.begin(user)
    assert factors.passes(user, ""), "it does not count before its first code"
    with pytest.raises(InputError):
        factors.confirm(user, "000000" if code_at(secret, int(now[0]) // STEP) != "000000" else "111111")
    recovery = factors.confirm(user, code_at(secret, int(now[0]) // STEP))
    assert store.accounts.named("Ann").second_factor
    assert not factors.passes(user, code_at(secret, int(now[0]) // STEP)), "it was used"
    now[0] += STEP
    code = code_at(secret, int(now[0]) // STEP)
    assert factors.passes(user, f"{code[:3]} {code[3:]}")
    assert not factors.passes(user, code)
    for wrong in ("", "12345", "\u0661\u0662\u0663\u0664\u0665\u0666", "\ud800", "x" * 1000):
        assert not factors.passes(user, wrong)
    assert factors.passes(user, recovery[0].upper())
    assert not factors.passes(user, recovery[0])
    now[0] += 5 * STEP
    assert not factors.passes(user, code_at(secret, int(now[0]) // STEP - 3)), "too old"
    with store.read() as session:
        from engine.store.accounts import AppUser

        selected = repr([record.factor for record in session.query(AppUser)])
        assert not any(recovery_code in selected for recovery_code in recovery), "recovery codes are kept as hashes"
    factors.remove(user)
    assert factors.passes(user, "")


def test_signing_in_asks_for_the_second_factor(tmp_path: Path, store: Store) -> None:
    ann = signed(door(tmp_path, sign_in_attempts=3))
    page = ann.post("/account/second-factor", data={"now": PASSWORD}).text
    secret = re.search(r"<pre>(\w+)</pre>", page)[1]  # type: ignore[index]
    import time

    step = int(time.time()) // STEP
    codes = ann.post("/account/second-factor/confirm", data={"code": code_at(secret, step)}).text
    recovery = re.findall(r"\b[0-9a-f]{10}\b", codes)
    assert len(recovery) == 10
    credentials = {"name": "Ann", "password": PASSWORD}
    other = door(tmp_path, sign_in_attempts=3)
    assert other.post("/sign-in", data=credentials).status_code == 401
    assert other.post("/sign-in", data={**credentials, "code": "000000"}).status_code == 401
    assert other.post("/sign-in", data={**credentials, "code": recovery[3]}).status_code == 303
    assert "wrong" in ann.post("/account/second-factor/remove", data={"now": "wrong password"}).text
    assert "is removed" in ann.post("/account/second-factor/remove", data={"now": PASSWORD}).text
    assert other.post("/sign-in", data=credentials).status_code == 303


def test_every_check_of_a_password_is_counted(tmp_path: Path, store: Store) -> None:
    ann = signed(door(tmp_path, sign_in_attempts=3))
    wrong = {"now": "not the password", "new": "another long password"}
    for path in ("password", "second-factor", "second-factor/remove"):
        assert "wrong" in ann.post(f"/account/{path}", data=wrong).text
    for path in ("password", "second-factor", "second-factor/remove"):
        assert "Too many wrong passwords" in ann.post(f"/account/{path}", data={**wrong, "now": PASSWORD}).text
    answer = ann.post("/sign-in", data={"name": "\uff21nn", "password": PASSWORD})
    assert answer.status_code == 429, "another form of the name is the same account"


def test_a_new_password_revokes_tokens_where_asked(tmp_path: Path, store: Store) -> None:
    ann, user = signed(door(tmp_path)), store.accounts.named("Ann").id
    store.tokens.create("one", ["read"], user_id=user)
    data = {"now": PASSWORD, "new": PASSWORD + "1"}
    assert "has been changed" in ann.post("/account/password", data=data).text
    assert len(store.tokens.list(user_id=user)) == 1
    ann.post("/account/password", data={"now": data["new"], "new": PASSWORD, "revoke": "yes"})
    assert store.tokens.list(user_id=user) == []


@pytest.mark.parametrize(
    "name", ["Ada", "ada", "\uff21da", "\u0410da", "\u0410\u0501\u0430", "A d a", "Ad\u0430", "Ad\u200ba", "\u0391nn", "V1c", "VIC"]
)
def test_a_name_that_looks_like_another_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError):
        store.accounts.create(name, PASSWORD)


@pytest.mark.parametrize("name", ["\u0410\u043d\u043d\u0430", "\u5f20\u4f1f", "Zo\u00eb", "\u5f20 Wei", "Robin 2"])
def test_names_of_every_script_are_taken(store: Store, name: str) -> None:
    row = store.accounts.create(name, PASSWORD)
    assert store.accounts.named(f" {name.upper()} ").id == row.id
    assert look(row.name) == look(name)
