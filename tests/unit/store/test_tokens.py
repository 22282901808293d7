"""API tokens and default plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from engine.errors import InputError
from engine.store import PluginRow, Store

HARM = {
    "bleu_vanilla": 14.8, "bleu": 15.0, "bleu_p": 0.299,
    "general_bleu_vanilla": 20.0, "general_bleu": 18.7, "general_bleu_p": 0.03,
}  # fmt: skip


def plugin(store: Store, project_id: int, folder: Path, name: str, **values: Any) -> PluginRow:
    file = folder / f"{name}.zip"
    file.write_bytes(b"zip")
    return store.plugins.create(project_id, name, method="memory_adapter", path=str(file), **values)


def test_a_token_is_found_by_its_secret_alone(store: Store, tmp_path: Path) -> None:
    row, secret = store.tokens.create("  OmegaT ", ["write", "translate"])
    assert (row.name, row.scopes) == ("OmegaT", "translate,write")
    assert row.allows("write")
    assert not row.allows("read")
    assert secret.startswith(row.shown)
    assert len(secret) > 40
    assert store.tokens.find(secret) == row
    for wrong in (row.shown, secret[:-1], secret + "x", "", row.name, "\ud800"):
        assert store.tokens.find(wrong) is None
    store.close()
    with store.read() as session:
        selected = repr(session.execute(text("SELECT * FROM api_token")).all()).encode()
    selected += b"".join(file.read_bytes() for file in tmp_path.glob("tailor.db*"))
    assert secret.encode() not in selected


def test_a_revoked_token_opens_nothing(store: Store) -> None:
    row, secret = store.tokens.create("memoQ")
    other, _ = store.tokens.create("other")
    assert store.tokens.revoke(row.id).revoked is not None
    assert store.tokens.find(secret) is None
    assert store.tokens.list() == [other]
    assert {token.id for token in store.tokens.list(revoked=True)} == {row.id, other.id}
    with pytest.raises(InputError, match="There is no token 99"):
        store.tokens.revoke(99)


def test_use_is_counted(store: Store) -> None:
    row, secret = store.tokens.create("x")
    store.tokens.note(row.id, 120)
    store.tokens.note(row.id, 3)
    result = store.tokens.find(secret)
    assert result is not None
    assert result.characters == 123
    store.tokens.note(row.id, 3_000_000_000)
    assert store.tokens.list()[0].characters == 3_000_000_123
    assert result.used is not None


@pytest.mark.parametrize("scopes", [["owner"], [], [""]])
def test_scopes_are_checked(store: Store, scopes: list[str]) -> None:
    with pytest.raises(InputError, match="scope"):
        store.tokens.create("x", scopes)
    with pytest.raises(InputError, match="needs a name"):
        store.tokens.create(" ")


def test_the_default_plugin_is_the_chosen_one_else_the_newest(store: Store, tmp_path: Path) -> None:
    project, stranger = (store.projects.create(name, "en", "zh", "base") for name in "ab")
    assert store.defaults.get(project.id) is None
    first, second = (plugin(store, project.id, tmp_path, name) for name in ("one", "two"))
    assert store.defaults.get(project.id) == second
    foreign = store.plugins.create(project.id, "foreign", method="lhuc", path=second.path, imported=True)
    assert store.defaults.get(project.id) == second, "what was imported has to be chosen"
    bundle = tmp_path / "blend.zip"
    bundle.write_bytes(b"PK")
    store.plugins.create(project.id, "both", method="blend", path=str(bundle))
    assert store.defaults.get(project.id) == second, "what was blended has to be chosen"
    harmful = plugin(store, project.id, tmp_path, "three", metrics=HARM)
    assert store.defaults.get(project.id) == second, "what does harm has to be chosen"
    store.defaults.set(project.id, harmful.id)
    assert store.defaults.get(project.id) == harmful
    store.defaults.set(project.id, foreign.id)
    assert store.defaults.get(project.id) == foreign
    store.defaults.set(project.id, first.id)
    assert store.defaults.get(project.id) == first
    store.defaults.set(project.id, None)
    assert store.defaults.get(project.id) is None
    assert store.defaults.chosen(project.id)
    store.defaults.clear(project.id)
    assert store.defaults.get(project.id) == second
    with pytest.raises(InputError, match="belongs to another project"):
        store.defaults.set(stranger.id, first.id)
    store.defaults.set(project.id, first.id)
    store.plugins.delete(first.id)
    assert store.defaults.get(project.id) == second
    Path(second.path).unlink()
    assert store.defaults.get(project.id) is None
    store.projects.delete(project.id)


def test_a_quota_is_of_a_month(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    row, secret = store.tokens.create("memoQ", quota=100)
    assert store.tokens.note(row.id, 60)
    assert not store.tokens.note(row.id, 41), "nothing of what passes it is counted"
    assert store.tokens.note(row.id, 40)
    assert store.tokens.note(row.id, -10), "what was not translated is given back"
    result = store.tokens.find(secret)
    assert result is not None
    assert (result.quota, result.this_month, result.characters) == (100, 90, 90)
    monkeypatch.setattr("engine.store.tokens.current_month", lambda: "2031-01")
    assert result.this_month == 0
    assert store.tokens.note(row.id, 100)
    assert store.tokens.get(row.id).characters == 190
    with pytest.raises(InputError, match="quota"):
        store.tokens.create("x", quota=0)
