"""The results of phrase extraction: phrases with their counts, sets of them on disk, and trees for drawing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.core.atomic_files import atomic_write, read_json
from engine.errors import InputError, storage_errors
from engine.messages import pack


@dataclass(frozen=True)
class Phrase:
    """A stretch of the user's text, exactly as it occurs in a sentence.

    `length` is counted in the parser's tokens, `count` is the number of occurrences (ignoring case and runs of spaces), `label`
    is the most frequent label, `example` the index of a sentence that contains `text`.
    """

    text: str
    length: int
    count: int
    label: str
    example: int


@dataclass(frozen=True)
class PhraseSet:
    """Phrases in a fixed order (length, descending count, text) and a sentence on the parser that found them."""

    phrases: list[Phrase]
    parser: str = ""

    def __len__(self) -> int:
        return len(self.phrases)

    def __iter__(self) -> Iterator[Phrase]:
        return iter(self.phrases)

    def by_length(self) -> dict[int, int]:
        """The number of different phrases of each length, short ones first."""
        return dict(sorted(Counter(phrase.length for phrase in self.phrases).items()))

    def save(self, path: Path) -> None:
        """Write one JSON object per line, and the parser beside it (`phrases.jsonl` -> `phrases.info.json`).

        Each file is written atomically. Raises StorageError if the disk is full or the folder read-only.
        """
        path = Path(path)
        with storage_errors("the phrases", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(_info_path(path), json.dumps(pack({"parser": self.parser, "phrases": len(self)}), ensure_ascii=False) + "\n")
            _replace(path, "".join(json.dumps(vars(phrase), ensure_ascii=False) + "\n" for phrase in self.phrases))

    @classmethod
    def load(cls, path: Path) -> PhraseSet:
        """Read the result of `save`; `parser` is empty without the second file. Raises InputError naming file and line."""
        path = Path(path)
        try:
            with path.open(encoding="utf-8", newline="\n") as lines:
                phrases = [_phrase(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
        except UnicodeDecodeError:
            raise InputError("{path} is not UTF-8 text: delete it and extract the phrases again.", path=path) from None
        except OSError as error:
            raise InputError(
                "{path} cannot be read ({strerror}): extract the phrases again.", path=path, strerror=error.strerror
            ) from None
        # Information only: the phrases are complete without it.
        parser = read_json(_info_path(path)).get("parser", "")
        return cls(phrases, parser if isinstance(parser, str) else "")


def _info_path(path: Path) -> Path:
    return path.with_suffix(".info.json")


def _replace(path: Path, text: str) -> None:
    with atomic_write(path, "the phrases") as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _phrase(line: str, where: str) -> Phrase:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("{where}: this is not JSON; delete the file and extract the phrases again.", where=where) from None
    field_types = {"text": str, "length": int, "count": int, "label": str, "example": int}
    if not isinstance(row, dict) or any(type(row.get(name)) is not kind for name, kind in field_types.items()):
        raise InputError("{where}: a phrase needs text, length, count, label and example; extract the phrases again.", where=where)
    if not row["text"].strip() or row["length"] < 1 or row["count"] < 1 or row["example"] < 0:
        raise InputError("{where}: a phrase has text, a length and count of at least 1, and an example of at least 0.", where=where)
    return Phrase(**{name: row[name] for name in field_types})


@dataclass(frozen=True)
class Tree:
    """One sentence as nested nodes for drawing. A leaf is a word without children, labelled by part of speech or relation."""

    label: str
    text: str
    children: tuple[Tree, ...] = ()

    def walk(self) -> Iterator[Tree]:
        """All nodes, parents before children, left before right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def leaves(self) -> list[Tree]:
        """The words in tree order: left to right, except for words separated by a crossing dependency."""
        return [node for node in self.walk() if not node.children]

    def to_mapping(self) -> dict[str, object]:
        """The tree as JSON represents it: `label`, `text`, `children`."""
        top: dict[str, object] = {}
        waiting: list[tuple[Tree, dict[str, object]]] = [(self, top)]
        while waiting:
            node, row = waiting.pop()
            rows: list[dict[str, object]] = [{} for _ in node.children]
            row.update(label=node.label, text=node.text, children=rows)
            waiting.extend(zip(node.children, rows, strict=True))
        return top
