"""Cards of bases, corpora and plugins: README.md files with the Hugging Face Hub's YAML front matter, read without network.

The keys are the Hub's (https://huggingface.co/docs/hub/model-cards#model-card-metadata): `license`, `license_name`,
`license_link`, `language`, `pretty_name`, `datasets`, `tags`, and our `license_note`, a sentence on what the licence means for
the user. Cards may also come from untrusted bundles and folders: unreadable parts count as not stated, and no card is an error.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOT_STATED = "not stated"
CARD_FILE = "README.md"
LARGEST = 1 << 20  # bytes of a card that are read
LARGEST_FRONT = 1 << 16  # characters of front matter, since YAML is slow
DEEPEST_FRONT = 50  # maximum nesting of brackets; YAML's time grows quadratically
FRONT = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
LONGEST_SUMMARY = 300  # characters
LONGEST_PARAGRAPH = 4000  # characters of a paragraph that are examined
PLACEHOLDERS = ("other", "unknown", "")  # the Hub's placeholders for an unknown licence

# Common names of the licences that most bases and corpora have; others show their id.
NAMES = {
    "apache-2.0": "Apache 2.0",
    "mit": "MIT",
    "bsd-3-clause": "BSD 3-Clause",
    "gpl-3.0": "GPL 3.0",
    "cc0-1.0": "CC0 1.0",
    "cc-by-4.0": "CC BY 4.0",
    "cc-by-sa-3.0": "CC BY-SA 3.0",
    "cc-by-sa-4.0": "CC BY-SA 4.0",
    "cc-by-nc-4.0": "CC BY-NC 4.0",
    "cc-by-nc-sa-4.0": "CC BY-NC-SA 4.0",
    "cc-by-nc-nd-4.0": "CC BY-NC-ND 4.0",
}
NON_COMMERCIAL = re.compile(r"(^|[\W_])nc([\W_]|$)|non-?commercial", re.IGNORECASE)
RESEARCH = re.compile(r"^(?=[^\n]*\bresearch\b)(?=[^\n]*\bonly\b)|\bresearch-only\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class ModelCard:
    """The content of a README.md.

    `license` is the Hub's id ("" if not stated), `body` the Markdown below the front matter, `summary` its first paragraph,
    `metadata` the front matter's plain values.
    """

    title: str
    license: str = ""
    license_note: str = ""
    languages: tuple[str, ...] = ()
    summary: str = ""
    body: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def license_name(self) -> str:
        """The licence in a few words, suitable for a table: `CC0 1.0`, `research and evaluation only`, `not stated`."""
        if self.license.lower() in PLACEHOLDERS:
            name = self.metadata.get("license_name")
            return str(name).replace("-", " ") if name else NOT_STATED
        return NAMES.get(self.license.lower(), self.license)

    @property
    def license_line(self) -> str:
        """One sentence for the user: `Licence: CC0 1.0. Free for any use.`"""
        note = self.license_note
        if not note and self.restricted:
            note = "Not for commercial use." if self._non_commercial else "For research only."
        return f"Licence: {self.license_name}." + (f" {note}" if note else "")

    @property
    def restricted(self) -> bool:
        """Whether the licence rules out commercial use, or allows research only."""
        stated = f"{self.license} {self.metadata.get('license_name', '')} {self.license_note}".replace("_", "-")
        return self._non_commercial or bool(RESEARCH.search(stated))

    @property
    def _non_commercial(self) -> bool:
        ids = f"{self.license} {self.metadata.get('license_name', '')}"
        return bool(NON_COMMERCIAL.search(ids)) or bool(re.search(r"non-?commercial", self.license_note, re.I))


def read_card_file(path: str | Path) -> ModelCard:
    """The card at `path`: a Markdown file, or a folder with README.md. Never raises.

    A file that is missing or unreadable gives a card with the folder's name and no licence.
    """
    path = Path(path)
    try:
        file = path / CARD_FILE if path.is_dir() else path
        name = file.resolve().parent.name
        with file.open("rb") as opened:
            text = opened.read(LARGEST).decode("utf-8-sig", errors="replace")
    except OSError:
        return ModelCard(title=path.name if path.name != CARD_FILE else path.parent.name)
    return parse_card(text, name)


def parse_card(text: str, name: str = "") -> ModelCard:
    """A card from the text of a README.md; `name` is the default title. Never raises."""
    text = text[:LARGEST].replace("\r\n", "\n").removeprefix("\ufeff")
    metadata, body = _front_matter(text)
    heading = re.search(r"^#[ \t]+(\S.*)", body, re.MULTILINE)
    words = heading[1][:LONGEST_PARAGRAPH].rstrip().rstrip("#") if heading else ""
    title = _text(metadata, "pretty_name") or _plain_words(words) or name
    license_id = metadata.get("license", "")
    if isinstance(license_id, list):  # the Hub allows several
        license_id = ", ".join(map(str, license_id))
    return ModelCard(
        title=title,
        license=str(license_id).strip(),
        license_note=_text(metadata, "license_note"),
        languages=tuple(dict.fromkeys(_codes(metadata.get("language")))),
        summary=_summary(body),
        body=body.strip("\n"),
        metadata=metadata,
    )


def _front_matter(text: str) -> tuple[dict[str, object], str]:
    match = FRONT.match(text[: LARGEST_FRONT + 1000])
    if match is None:
        return {}, text
    body = text[match.end() :]
    if len(match[1]) > LARGEST_FRONT or _depth(match[1]) > DEEPEST_FRONT:
        return {}, body
    import yaml  # type: ignore[import-untyped]
    from huggingface_hub import RepoCard

    try:
        data = RepoCard(f"---\n{match[1]}\n---\n", ignore_metadata_errors=True).data.to_dict()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}, body
    return {str(key): selected for key, value in data.items() if (selected := _plain(value)) is not None}, body


def _depth(front: str) -> int:
    """The maximum number of brackets open at once."""
    steps = (1 if mark in "[{" else -1 for mark in re.findall(r"[][{}]", front))
    return max(itertools.accumulate(steps), default=0)


def _plain(value: Any) -> Any:
    """Numbers, strings and short lists of them; nested values are dropped, which bounds the size of a displayed card."""
    if isinstance(value, (str, int, float)):
        return value[:2000] if isinstance(value, str) else value
    if isinstance(value, list):
        return [item[:200] if isinstance(item, str) else item for item in value[:200] if isinstance(item, (str, int))]
    return None


def _text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key, "")
    return " ".join(value.split()) if isinstance(value, str) else ""


def _codes(value: Any) -> list[str]:
    # YAML 1.1 reads a bare `no`, the code of Norwegian, as false.
    items = value if isinstance(value, list) else [value]
    return ["no" if item is False else item.strip().lower() for item in items if item is False or isinstance(item, str)]


def _summary(body: str) -> str:
    """The first paragraph of prose: no heading, table, list, quotation, code or HTML."""
    code = False
    for block in re.split(r"\n\s*\n", body):
        lines = []
        for line in block.split("\n"):
            if line.lstrip().startswith(("```", "~~~")):
                code = not code
            elif not code and not re.match(r"\s{0,3}#{1,6}\s|\s*\|", line):
                lines.append(line.strip())
        prose = _plain_words(" ".join(lines)[:LONGEST_PARAGRAPH])
        if prose and not re.match(r"[-*+><!|]|\d+[.)]\s", prose):
            return prose if len(prose) <= LONGEST_SUMMARY else prose[: LONGEST_SUMMARY - 1].rstrip() + "…"
    return ""


def _plain_words(markdown: str) -> str:
    """Remove Markdown's inline markup: links become their text, emphasis and code quotes are removed."""
    text = re.sub(r"!\[[^][]*\]\([^)]{0,500}\)", "", markdown)
    text = re.sub(r"\[([^][]*)\]\([^)]{0,500}\)", r"\1", text)
    return " ".join(re.sub(r"\*\*|__|`", "", text).split())
