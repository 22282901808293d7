"""An imported plugin is a project's default only where somebody chose it, and an import that fails leaves no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.settings import Settings
from engine.plugins.library import Library
from engine.store import Store

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "golden" / "format-1").glob("*.zip"))[0]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    settings = Settings(home=str(tmp_path / "home"), device="cpu")
    return Library(Store(settings.store_url), settings)


def test_what_was_imported_is_no_default_by_itself(library: Library) -> None:
    store = library.store
    project = store.projects.create("Essays", "en", "zh", "en-zh")
    first = library.take_in(project, GOLDEN)
    assert store.plugins.get(first.id).imported
    assert store.defaults.get(project.id) is None
    plugin = store.plugins.create(project.id, "Own", method="lhuc", path=str(GOLDEN))
    assert store.defaults.get(project.id) == plugin
    library.take_in(project, GOLDEN)
    assert store.defaults.get(project.id) == plugin, "the newest is one from elsewhere"
    store.defaults.set(project.id, first.id)
    assert store.defaults.get(project.id) == first


def test_an_import_whose_row_cannot_be_made_leaves_no_file(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    project = library.store.projects.create("Essays", "en", "zh", "en-zh")

    def full(*args: object, **more: object) -> None:
        raise RuntimeError("no row")

    monkeypatch.setattr(library.store.plugins, "create", full)
    with pytest.raises(RuntimeError):
        library.take_in(project, GOLDEN)
    assert list(library.folder(project.id).iterdir()) == []
