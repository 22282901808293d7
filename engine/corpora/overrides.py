"""The user's decisions about individual sentences: which to exclude, and which to keep although a rule would skip them.

decisions.jsonl of a workspace logs the decisions, one line per click. Lines are only appended, so every step can be undone.
A sentence is identified by a key computed from its text and source, so a decision applies wherever the sentence occurs, even
after files are added or lines move.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.undo_log import Step, append_step, append_undo, read_steps
from engine.errors import InputError
from engine.messages import Message, mark

DECISIONS_FILE = "decisions.jsonl"
ACTIONS = ("exclude", "approve", "clear")
LONGEST = 500  # characters stored of a text, for display
MOST = 20_000  # sentences in one step


def segment_key(text: str, source: str | None = None) -> str:
    """Twenty hexadecimal digits that identify a cleaned sentence and its source."""
    return segment_digest(text, source).hex()


def segment_digest(text: str, source: str | None = None) -> bytes:
    content = text if source is None else f"{text}\0{source}"
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=10).digest()


STEPS = {  # in words, for one sentence and for several
    "exclude": (mark("exclude {count:,} sentence"), mark("exclude {count:,} sentences")),
    "approve": (mark("keep {count:,} sentence"), mark("keep {count:,} sentences")),
    "clear": (mark("reset {count:,} sentence"), mark("reset {count:,} sentences")),
}


@dataclass
class Decisions:
    """The current decisions: excluded and approved keys, each with its text, and the steps that can be undone."""

    excluded: dict[str, str] = field(default_factory=dict)
    approved: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.excluded or self.approved)

    def to_list(self) -> list[list[str]]:
        """The current decisions in a fixed order, for hashing; empty if there are none."""
        return [sorted(self.excluded), sorted(self.approved)] if self else []

    @classmethod
    def load(cls, workspace: Path) -> Decisions:
        """The decisions of a workspace. Incomplete lines and unknown actions are ignored."""
        result = cls(steps=read_steps(workspace / DECISIONS_FILE, ACTIONS, "keys", dict))
        for step in result.steps:
            result._apply(step["action"], step["keys"])
        return result

    def _apply(self, action: str, keys: dict[str, str]) -> None:
        for key, text in keys.items():
            self.excluded.pop(key, None)
            self.approved.pop(key, None)
            if action != "clear":
                (self.excluded if action == "exclude" else self.approved)[key] = str(text)

    @staticmethod
    def decide(workspace: Path, action: str, sentences: Iterable[tuple[str, str | None]]) -> Decisions:
        """Apply one of ACTIONS to sentences, given as (text, source), in one step.

        Raises InputError on an unknown action, or no or too many sentences, StorageError if the log cannot be written.
        """
        return Decisions.decide_keys(workspace, action, {segment_key(text, source): text for text, source in sentences})

    @staticmethod
    def decide_keys(workspace: Path, action: str, keys: Mapping[str, str]) -> Decisions:
        """Apply one of ACTIONS to keys, given with their texts, in one step; raises as `decide` does."""
        if action not in ACTIONS:
            raise InputError("{action} is not a decision: choose one of {actions}.", action=action, actions=", ".join(ACTIONS))
        if not keys:
            raise InputError("No sentence was chosen. Reload the page and try again.")
        if len(keys) > MOST:
            raise InputError(
                "{count:,} sentences are selected; up to {most:,} can be decided in one step. Narrow the filter.",
                count=len(keys),
                most=MOST,
            )
        append_step(workspace / DECISIONS_FILE, {"action": action, "keys": {key: text[:LONGEST] for key, text in keys.items()}})
        return Decisions.load(workspace)

    @staticmethod
    def undo(workspace: Path) -> Decisions:
        """Undo the last step. Raises InputError if there is none."""
        append_undo(workspace / DECISIONS_FILE, Decisions.load(workspace).steps)
        return Decisions.load(workspace)

    def key(self) -> str:
        """A short hash of the current decisions; empty if there are none."""
        return hashlib.sha256(json.dumps(self.to_list()).encode()).hexdigest()[:16] if self else ""

    @property
    def last(self) -> str:
        """The last step in words, as the label of a button; empty if there is none."""
        if not self.steps:
            return ""
        step = self.steps[-1]
        singular, plural = STEPS[step["action"]]
        count = len(step["keys"])
        return Message(singular if count == 1 else plural, count=count)
