"""What grows in files: sentences, phrases, a memory, plugins; each with what the studio does with it."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from studio_pages import BASE, TEXTS, composed, runs_of

from measures.growing import Call, Item
from measures.setup import ROOT, Setup

__all__ = ["MEMORY", "PHRASES", "PLUGINS", "SENTENCES", "opened", "project_of"]

PER_SENTENCE = 5  # phrases
LAYERS = 4
BUNDLE = ROOT / "tests" / "golden" / "format-2" / "plugin.zip"


@functools.cache
def opened(home: Path) -> Any:
    """The studio's service over a home."""
    from engine.core.settings import Settings
    from studio.services.service import Service

    return Service(Settings(home=str(home), device="cpu", threads=1))


def project_of(home: Path) -> Any:
    """The home's project, made when missing."""
    service = opened(home)
    return next(iter(service.store.projects.list()), None) or service.create_project("Growth", "en", "zh", str(BASE))


def sentences_of(count: int) -> list[str]:
    return composed([ROOT / "assets" / "samples" / name for name in TEXTS], count, 1)


# -- sentences


def grow_sentences(home: Path, size: int) -> None:
    service, project = opened(home), project_of(home)
    folder = service.workspace(project.id) / "samples"
    folder.mkdir(exist_ok=True)
    (folder / "all.txt").write_text("\n".join(sentences_of(size)) + "\n", encoding="utf-8")


def sentence_calls(home: Path) -> Sequence[Call]:
    from engine.corpora import Corpus, CorpusOptions
    from engine.corpora.importer import SampleFiles, import_to
    from studio.services import jsonl_pages, segments

    service, project = opened(home), project_of(home)
    folder = service.workspace(project.id)
    files = SampleFiles([folder / "samples" / "all.txt"], "zh")
    words = searched()

    def page(**view: Any) -> Callable[[], Any]:
        return lambda: segments.listing(folder, service.report(project.id), service.decisions(project.id), segments.View(**view))

    def search() -> Any:
        return page(view="kept", words=next(words))()

    def closed() -> None:
        jsonl_pages._opened.cache_clear()

    return [
        Call("imported", lambda: import_to(folder, files, options=CorpusOptions(max_sentences=10_000_000)), once=True),
        Call("read by a job", lambda: len(Corpus.load(folder)), once=True),
        Call("Samples: opened for the first time after an import", page(view="kept"), again=closed),
        Call("Samples: a page", page(view="kept", at=50)),
        Call("Samples: random sentences", page(view="random", seed=3)),
        Call("Samples: a search", search),
    ]


# -- phrases


def grow_phrases(home: Path, size: int) -> None:
    from engine.corpora import import_corpus
    from engine.phrases import Phrase, PhraseSet

    service, project = opened(home), project_of(home)
    folder = service.workspace(project.id)
    file = folder / "all.txt"
    lines = sentences_of(max(200, size // PER_SENTENCE))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = import_corpus([file], "zh")
    corpus.save(folder)
    runs = runs_of([segment.text for segment in corpus.segments], size)
    phrases = [
        Phrase(text=run, length=max(1, len(run) * 2 // 3), count=times, label="statistical", example=example)
        for run, times, example in runs
    ]
    assert len(phrases) == size, "too few sentences for so many phrases"
    PhraseSet(phrases, "Runs of characters.").save(folder / "phrases.jsonl")
    (folder / "phrases.table.npz").unlink(missing_ok=True)


def phrase_calls(home: Path) -> Sequence[Call]:
    from engine.phrases.table import TABLE_FILE, open_table
    from studio.components.phrase_table import histograms
    from studio.services import phrases as shown
    from studio.services.project_phrases import ProjectPhrases

    service, project = opened(home), project_of(home)
    folder = service.workspace(project.id)
    look = shown.PhraseView(order="times")
    words = searched()

    def closed() -> None:
        shown._table.cache_clear()
        shown._phrases.cache_clear()

    def table() -> Any:
        return shown.phrases_of(folder, project, service.settings, LAYERS)

    def page(**view: Any) -> list[Any]:
        phrases, chosen = table(), look.but(**view)
        return phrases.page(phrases.on_a_page(chosen))

    def left_out() -> list[Any]:
        source = ProjectPhrases(service, project)
        source.leave_out([page(order="long")[0].text], sentences=True)
        source.excluded_sentences()
        return page()

    def restored() -> None:
        ProjectPhrases(service, project).undo()

    return [
        Call(
            "counted in the samples and in general text",
            lambda: open_table(folder, "zh", service.settings.assets_dir),
            once=True,
            again=(folder / TABLE_FILE).unlink,
        ),
        Call("Phrases: opened for the first time", lambda: (page(), histograms(table(), look, None)), again=closed),
        Call("Phrases: the next page", lambda: page(start=25)),
        Call("Phrases: another length", functools.partial(lengths, page, itertools.cycle((1, 2, 3, 4)))),
        Call("Phrases: a search", lambda: page(words=next(words))),
        Call("Phrases: one excluded with its sentences", left_out, again=restored),
    ]


def searched() -> Iterator[str]:
    """Words to look for, no two the same, since what was found is kept."""
    return map("".join, itertools.product("的一是不了在人有我他这中大来上", repeat=2))


def lengths(page: Callable[..., Any], numbers: Any) -> Any:
    return page(low=next(numbers))


# -- a memory


def grow_memory(home: Path, size: int) -> None:
    home.mkdir(parents=True, exist_ok=True)
    setup = Setup(scratch=home, rounds=1)
    setup.memory(size // LAYERS).path.replace(home / "memory.safetensors")


def memory_calls(home: Path) -> Sequence[Call]:
    from engine.memory.store import open_memory

    setup = Setup(scratch=home, rounds=1)
    base = setup.base
    return [
        Call("opened, which checks and maps it", lambda: open_memory(home, base).sizes),
        Call(
            "opened by a plugin that reads all of it: keys and values made",
            lambda: setup.plugin("memory_adapter", open_memory(home, base), search="exact"),
            once=True,
        ),
    ]


# -- plugins


def grow_plugins(home: Path, size: int) -> None:
    from sqlalchemy import insert

    from engine.store import tables

    service, project = opened(home), project_of(home)
    folder = service.library.folder(project.id)
    there = len(service.store.plugins.list(project.id))
    if not there:
        (folder / "plugin-0.zip").write_bytes(BUNDLE.read_bytes())
    rows = []
    for number in range(there, size):
        path = folder / f"plugin-{number}.zip"
        if not path.exists():
            os.link(folder / "plugin-0.zip", path)
        metrics = {"style": {"bleu": {"score": 20.0, "before": 18.0}}}
        rows.append({"project_id": project.id, "name": f"Growth {number}", "method": "memory_adapter", "path": str(path),
                     "metrics": metrics, "imported": False})  # fmt: skip
    with service.store.write() as session:
        session.execute(insert(tables.Plugin), rows)


def plugin_calls(home: Path) -> Sequence[Call]:
    from studio.components import plugin_cards
    from studio.services.comparisons import Comparisons

    service, project = opened(home), project_of(home)

    def cards() -> str:
        versions = service.library.versions(project.id)
        seen = {row.id: plugin_cards.card_data(row) for plugin in versions for row in plugin.rows}
        return plugin_cards.plugin_cards(versions, seen, project, tags=service.store.tags.of(project.id))

    comparisons = Comparisons(service)
    return [
        Call("listed", lambda: service.library.versions(project.id)),
        Call("Plugins: all cards, for the first time", cards, once=True),
        Call("Plugins: all cards, again", cards),
        Call("the frame of a page, polled every two seconds", lambda: service.overview(project.id)),
        Call("the plugin that is used where none is named", lambda: service.store.defaults.get(project.id)),
        Call("Compare: the plugins to begin with", lambda: comparisons.chosen_plugins(project, None, None)),
    ]


SENTENCES = Item("sentences", "Sentences of a project", 100, 1_000_000, grow_sentences, sentence_calls)
PHRASES = Item("phrases", "Phrases of a project", 1_000, 1_000_000, grow_phrases, phrase_calls)
MEMORY = Item("memory", "Phrases of a memory", 1_000, 1_000_000, grow_memory, memory_calls)
PLUGINS = Item("plugins", "Plugins of a project", 1, 10_000, grow_plugins, plugin_calls)
