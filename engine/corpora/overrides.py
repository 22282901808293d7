"""What the user decided about single sentences: which are left out, which are kept although a rule would skip them.

decisions.jsonl of a workspace is a list of what was done, one line a click, appended to and never changed; so everything
can be undone, step by step. A sentence is known by a key of its text and its source: a decision holds wherever the
sentence stands, also after files were added or lines moved.
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
LONGEST = 500  # characters of a text that are kept to be shown
MOST = 20_000  # sentences in one step


def segment_key(text: str, source: str | None = None) -> str:
    """Twenty hexadecimal digits that stand for a cleaned sentence and its source."""
    return segment_digest(text, source).hex()


def segment_digest(text: str, source: str | None = None) -> bytes:
    whole = text if source is None else f"{text}\0{source}"
    return hashlib.blake2b(whole.encode("utf-8", "replace"), digest_size=10).digest()


STEPS = {  # in words, of one sentence and of many
    "exclude": (mark("exclude {count:,} sentence"), mark("exclude {count:,} sentences")),
    "approve": (mark("keep {count:,} sentence"), mark("keep {count:,} sentences")),
    "clear": (mark("reset {count:,} sentence"), mark("reset {count:,} sentences")),
}


@dataclass
class Decisions:
    """What holds now: keys left out, keys kept, each with the text they stand for; and how many steps can be undone."""

    excluded: dict[str, str] = field(default_factory=dict)
    approved: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.excluded or self.approved)

    def to_list(self) -> list[list[str]]:
        """What holds, in one order, to be hashed; empty where nothing was decided."""
        return [sorted(self.excluded), sorted(self.approved)] if self else []

    @classmethod
    def load(cls, workspace: Path) -> Decisions:
        """What was decided in this workspace. A line that is half written, or unknown, is passed over."""
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
        """Leave out, keep, or take a decision back, for sentences given as (text, source), in one step.

        Raises InputError on an unknown action or too many sentences, StorageError when it cannot be written.
        """
        return Decisions.decide_keys(workspace, action, {segment_key(text, source): text for text, source in sentences})

    @staticmethod
    def decide_keys(workspace: Path, action: str, keys: Mapping[str, str]) -> Decisions:
        """The same for keys with the texts they stand for. Raises InputError for an unknown action, no sentence or too
        many.
        """
        if action not in ACTIONS:
            raise InputError(
                "{action} is not a decision: choose one of {actions}.", action=action, actions=", ".join(ACTIONS)
            )
        if not keys:
            raise InputError("No sentence was chosen. Reload the page and try again.")
        if len(keys) > MOST:
            raise InputError(
                "{count:,} sentences are selected; up to {most:,} can be decided in one step. Narrow the filter.",
                count=len(keys),
                most=MOST,
            )
        append_step(
            workspace / DECISIONS_FILE, {"action": action, "keys": {key: text[:LONGEST] for key, text in keys.items()}}
        )
        return Decisions.load(workspace)

    @staticmethod
    def undo(workspace: Path) -> Decisions:
        """Take the last step back. Raises InputError where there is none."""
        append_undo(workspace / DECISIONS_FILE, Decisions.load(workspace).steps)
        return Decisions.load(workspace)

    def key(self) -> str:
        """Short text that is the same while the same decisions hold; empty for none."""
        return hashlib.sha256(json.dumps(self.to_list()).encode()).hexdigest()[:16] if self else ""

    @property
    def last(self) -> str:
        """The last step in words, as a button says it; empty where there is none."""
        if not self.steps:
            return ""
        step = self.steps[-1]
        one, many = STEPS[step["action"]]
        count = len(step["keys"])
        return Message(one if count == 1 else many, count=count)
