"""Packages of the Open Packaging Conventions (ISO/IEC 29500-2), as PowerPoint and Excel write them: parts that lead to others.

Relationships, not names, say which part holds what. Parts are unpacked when they are asked for, so that damage in
a picture or a style sheet is no matter of the text.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.corpora.formats.documents.files import parse_xml, read_archive, rebuilt_archive, xml_bytes
from engine.corpora.formats.documents.model import Context
from engine.corpora.formats.documents.xmltext import local

DEEPEST = 6  # links from a slide or a drawing to what belongs to it: a chart, and the shapes in the chart


@dataclass(frozen=True)
class Link:
    """A relationship: its id, the last word of its type (`slide`), and the part that it leads to."""

    id: str
    kind: str
    part: str


class Package:
    """The parts of a package that were read, and the way back to a file."""

    def __init__(self, path: Path, context: Context) -> None:
        self.path, self.context = path, context
        self._data: dict[str, bytes] = {}
        self._trees: dict[str, Any] = {}
        self._links: dict[str, list[Link]] = {}
        self.fetch([""])

    def fetch(self, parts: Iterable[str]) -> None:
        """Read parts with their relationships; those that the package lacks are left out. Raises DocumentError."""
        wanted = {name for part in parts if part not in self._data for name in (part, _links_of(part))}
        if wanted:
            self._data |= read_archive(self.path, self.context, wanted.__contains__)

    def __contains__(self, part: str) -> bool:
        return part in self._data

    def tree(self, part: str) -> Any:
        """A part that was fetched, as XML. Raises DocumentError where it is damaged."""
        if part not in self._trees:
            self._trees[part] = parse_xml(self._data[part], f"{self.context.name}: {part}")
        return self._trees[part]

    def forget(self, part: str) -> None:
        """Let go of the tree of a part, where nothing in it was changed; it is large."""
        self._trees.pop(part, None)

    def links(self, part: str, *kinds: str) -> list[Link]:
        """Where a part that was fetched leads to within the package, of some kinds or of all. Raises DocumentError."""
        if part not in self._links:
            name = _links_of(part)
            self._links[part] = self._read_links(part, name) if name in self._data else []
        return [link for link in self._links[part] if not kinds or link.kind in kinds]

    def _read_links(self, part: str, name: str) -> list[Link]:
        result = []
        for element in parse_xml(self._data[name], f"{self.context.name}: {name}").getroot():
            if local(element) != "Relationship" or element.get("TargetMode") == "External":
                continue
            target = str(element.get("Target") or "")
            path = posixpath.normpath(posixpath.join("/", posixpath.dirname(part), target)).lstrip("/")
            kind = str(element.get("Type") or "").rpartition("/")[2]
            result.append(Link(str(element.get("Id") or ""), kind, path))
        return result

    def main(self, kind: str) -> str:
        """The part that the package is about, fetched, where its root is of that kind (`workbook`); else an empty text.
        Raises DocumentError where it is damaged.
        """
        for link in self.links("", "officeDocument"):
            self.fetch([link.part])
            if link.part in self and local(self.tree(link.part).getroot()) == kind:
                return link.part
        return ""

    def follow(self, starts: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
        """The parts that can be reached from those given, {part: its place}, each once and behind the one that leads to it.

        `starts` are parts with their places, `kinds` the relationships that are followed and what they add to a place; what
        adds nothing is a place of its own. Raises DocumentError.
        """
        seen, level = set(starts), list(starts)
        for _ in range(DEEPEST):
            self.fetch(level)
            level = list(
                dict.fromkeys(
                    link.part
                    for part in level
                    if part in self
                    for link in self.links(part, *kinds)
                    if link.part not in seen
                )
            )
            seen.update(level)
        result: dict[str, str] = {}
        for start, where in starts.items():
            stack = [(start, where)]
            while stack:
                part, location = stack.pop()
                if part in result or part not in self:
                    continue
                result[part] = location
                onward = [(link.part, kinds[link.kind].format(location)) for link in self.links(part, *kinds)]
                stack.extend(reversed(onward))
        return result

    def rebuilt(self, changed: Iterable[str]) -> bytes:
        """The package with the trees of the changed parts; all other parts as they were."""
        fresh = {part: xml_bytes(self.tree(part), self._data[part]) for part in changed}
        return rebuilt_archive(self.path, fresh) if fresh else self.path.read_bytes()


def _links_of(part: str) -> str:
    folder, _, name = part.rpartition("/")
    return posixpath.join(folder, "_rels", f"{name}.rels")
