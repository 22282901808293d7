"""The trees of the sentences that phrases were taken from, stored in trees.sqlite for drawing without the parser."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.core.atomic_files import atomic_write
from engine.errors import StorageError
from engine.phrases.types import Tree

TREES_FILE = "trees.sqlite"
DEEPEST = 400  # levels; JSON and drawing recurse once per level


class TreeWriter:
    """Stores the tree of each sentence."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, sentence: str, tree: Tree) -> None:
        if _depth(tree) <= DEEPEST:
            row = (sentence, zlib.compress(json.dumps(_packed(tree), ensure_ascii=False).encode()))
            self._connection.execute("INSERT OR REPLACE INTO trees VALUES (?, ?)", row)


@contextlib.contextmanager
def writing_trees(path: Path) -> Iterator[TreeWriter]:
    """Write all trees of a corpus; the file is replaced if the block succeeds. Raises StorageError."""
    with atomic_write(path, "the trees") as temporary:
        connection = sqlite3.connect(temporary)
        try:
            connection.execute("PRAGMA journal_mode = OFF")  # an unfinished file is discarded as a whole
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("CREATE TABLE trees (sentence TEXT PRIMARY KEY, tree BLOB NOT NULL) WITHOUT ROWID")
            yield TreeWriter(connection)
            connection.commit()
        except sqlite3.Error as error:
            raise StorageError(
                "The trees could not be written to {path} ({error}). Free some space there.", path=path, error=error
            ) from None
        finally:
            connection.close()


def read_tree(path: Path, sentence: str) -> Tree | None:
    """The tree of a sentence; None if there is none, or the file is missing."""
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            row = connection.execute("SELECT tree FROM trees WHERE sentence = ?", (sentence,)).fetchone()
        return _unpacked(json.loads(zlib.decompress(row[0]))) if row else None
    except (sqlite3.Error, zlib.error, ValueError, TypeError, RecursionError):
        return None  # the sentence can be parsed again


def _depth(tree: Tree) -> int:
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((child, level + 1) for child in node.children)
    return deepest


def _packed(tree: Tree) -> list[Any]:
    return [tree.label, tree.text, *([[_packed(child) for child in tree.children]] if tree.children else [])]


def _unpacked(row: list[Any]) -> Tree:
    label, text, *children = row
    return Tree(str(label), str(text), tuple(_unpacked(child) for child in children[0]) if children else ())
