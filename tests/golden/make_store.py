"""Makes the golden store: the SQLite store of release 0.1.0 (schema 1) with a few rows of every kind, as SQL.

It was made once, by the program as it was then, and is kept in tests/golden/store-1: every later version opens it with all
its rows (tests/unit/store/test_migrations.py). A later schema gets a golden file of its own; this one is not made again.

    python tests/golden/make_store.py FILE.sql
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main(target: Path) -> None:
    from engine.store import Store

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tailor.db"
        store = Store(f"sqlite:///{file}")
        fill(store)
        store.close()
        with contextlib.closing(sqlite3.connect(file)) as connection:
            target.write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")


def fill(store: object) -> None:
    """Rows of every table, by the store's own doors."""
    from engine.store import Store

    assert isinstance(store, Store)
    gone = store.projects.create("Deleted", "en", "zh", "en-zh")
    store.projects.delete(gone.id)  # its number is not given again
    project = store.projects.create("鲁迅 Lu Xun", source="en", target="zh", base="en-zh")
    corpus = store.corpora.create(project.id, "呐喊.txt", folder="/data/projects/2")
    store.corpora.update(corpus.id, state="ready", kept=412, skipped={"too long": 3}, report={"kept": 412, "warnings": []})
    store.phrase_sets.create(corpus.id, "/data/projects/2/phrases.jsonl", "stanza's constituency parser, 1.10", 963)
    jobs = store.jobs
    jobs.enqueue("prepare", {"samples": ["呐喊.txt"]}, project_id=project.id)
    done = jobs.claim("here:1:aa", pid=1)
    assert done is not None
    jobs.progress(done.id, done.attempt, step="phrases", step_index=1, steps=2, done=412, total=412, metrics={"kept": 412})
    store.usage.note(done.id, cpu=98.5, memory=5_000_000_000, peak=6_000_000_000)
    jobs.finish(done.id, done.attempt, {"phrases": 963})
    jobs.enqueue("customize", {"samples": ["呐喊.txt"], "budget": "quick"}, project_id=project.id)
    failed = jobs.claim("here:1:aa", pid=1)
    assert failed is not None
    jobs.fail(failed.id, failed.attempt, "The disk is full: the plugin could not be written.")
    jobs.enqueue("customize", {"samples": ["呐喊.txt"], "budget": "best"}, project_id=project.id)
    plugin = store.plugins.create(
        project.id, "Lu Xun", method="memory_adapter", path="/data/projects/2/luxun.zip", base_fingerprint="abc",
        metrics={"bleu": 21.3}, job_id=done.id,
    )  # fmt: skip
    store.tags.set(plugin.id, ["style", "文学"])
    store.defaults.set(project.id, plugin.id)
    comparison = store.comparisons.create(project.id, "First look", [{"source": "I see.", "vanilla": "我明白了。"}])
    systems = [{"name": "base", "plugin_id": None, "method": "", "strength": 0.0}]
    store.sheets.create(project.id, "Sheet", [("I see.", "我懂了。"), ("It rains.", None)], systems)
    rating = store.ratings.create(
        project.id, "Round", one="base", two="Lu Xun", source="en", target="zh", seed=7,
        items=[{"source": "I see.", "one": "我明白了。", "two": "我懂了。"}], comparison_id=comparison.id,
    )  # fmt: skip
    rater = store.ratings.add_rater(rating.id, "Ann")
    store.ratings.answer(rater.id, 0, "fluency", "win")
    token, _ = store.tokens.create("memoQ", ("read", "translate"))
    store.tokens.note(token.id, characters=1234)
    store.workers.beat("here:1:aa", "here", 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
