"""The database: projects, corpora, phrase sets, jobs, plugins, comparisons, API tokens.

    store = Store(settings.store_url)
    project = store.projects.create("Lu Xun", source="en", target="zh", base="/models/en-zh")
    job = store.jobs.enqueue("customize", {"samples": ["luxun.txt"]}, project_id=project.id)

All results are plain frozen dataclasses, safe to keep and to pass to another thread. SQLAlchemy is imported only when
`Store` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.store.records import CorpusRow, JobRow, JobState, PluginRow, ProjectRow

if TYPE_CHECKING:
    from engine.store.store import Store


def __getattr__(name: str) -> Any:
    if name == "Store":
        from engine.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
