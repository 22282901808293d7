"""Packages of the Open Packaging Conventions (ISO/IEC 29500-2), as written by PowerPoint and Excel: parts linked to others.

Relationships, not names, determine the content of a part. Parts are unpacked on demand, so damage in a picture or a style
sheet does not affect the text.
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

DEEPEST = 6  # levels of links from a slide or a drawing to its parts, such as a chart and the shapes in it


@dataclass(frozen=True)
class Link:
    """A relationship: its id, the last word of its type (`slide`), and its target part."""

    id: str
    kind: str
    part: str


class Package:
    """The parts of a package that have been read, and the way back to a file."""

    def __init__(self, path: Path, context: Context) -> None:
        self.path, self.context = path, context
        self._data: dict[str, bytes] = {}
        self._trees: dict[str, Any] = {}
        self._links: dict[str, list[Link]] = {}
        self.fetch([""])

    def fetch(self, parts: Iterable[str]) -> None:
        """Read parts with their relationships, ignoring missing parts. Raises DocumentError."""
        names = {name for part in parts if part not in self._data for name in (part, _links_of(part))}
        if names:
            self._data |= read_archive(self.path, self.context, names.__contains__)

    def __contains__(self, part: str) -> bool:
        return part in self._data

    def tree(self, part: str) -> Any:
        """A fetched part as XML. Raises DocumentError if it is damaged."""
        if part not in self._trees:
            self._trees[part] = parse_xml(self._data[part], f"{self.context.name}: {part}")
        return self._trees[part]

    def forget(self, part: str) -> None:
        """Discard the tree of an unchanged part to free memory."""
        self._trees.pop(part, None)

    def links(self, part: str, *kinds: str) -> list[Link]:
        """The links of a fetched part within the package, of the given kinds or of all. Raises DocumentError."""
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
        """The fetched main part if its root element is of that kind (`workbook`), otherwise "". Raises DocumentError if damaged."""
        for link in self.links("", "officeDocument"):
            self.fetch([link.part])
            if link.part in self and local(self.tree(link.part).getroot()) == kind:
                return link.part
        return ""

    def follow(self, starts: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
        """{part: location} of the parts that can be reached from `starts`, each once and after the part that links to it.

        `starts` maps parts to locations, `kinds` the kinds of links to follow to patterns of locations, in which {} is the
        location of the linking part. Raises DocumentError.
        """
        seen, level = set(starts), list(starts)
        for _ in range(DEEPEST):
            self.fetch(level)
            level = list(
                dict.fromkeys(
                    link.part for part in level if part in self for link in self.links(part, *kinds) if link.part not in seen
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
        """The package with the trees of the changed parts; all other parts are unchanged."""
        members = {part: xml_bytes(self.tree(part), self._data[part]) for part in changed}
        return rebuilt_archive(self.path, members) if members else self.path.read_bytes()


def _links_of(part: str) -> str:
    folder, _, name = part.rpartition("/")
    return posixpath.join(folder, "_rels", f"{name}.rels")
