"""Phrases that the user leaves out: of the memory and, with their sentences, of what is trained on.

excluded_phrases.jsonl of a workspace is a list of what was done, one line a click, appended to and never changed; so each
step can be undone. A phrase is known by its key (`phrase_key`), so that a decision holds after samples were added.
A step takes phrases out alone, or with their sentences: then no training pair whose target holds one of them is used, and
no longer phrase around one of them is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from engine.core.undo_log import Step, append_step, append_undo, read_steps
from engine.errors import InputError
from engine.messages import Message
from engine.phrases.occurrences import Finder, phrase_key
from engine.phrases.types import Phrase

EXCLUSIONS_FILE = "excluded_phrases.jsonl"
ACTIONS = ("exclude", "restore")
MOST = 50_000  # phrases in one step


@dataclass
class Exclusions:
    """What holds now: phrases left out by key, each with its text; those whose sentences go as well; what was done."""

    phrases: dict[str, str] = field(default_factory=dict)
    with_sentences: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.phrases)

    def __contains__(self, text: str) -> bool:
        return phrase_key(text) in self.phrases

    @classmethod
    def load(cls, workspace: Path) -> Exclusions:
        """What was decided in this workspace. A line that is half written, or unknown, is passed over."""
        result = cls(steps=read_steps(workspace / EXCLUSIONS_FILE, ACTIONS, "phrases", list))
        for step in result.steps:
            result._apply(step)
        return result

    def _apply(self, step: Step) -> None:
        for text in map(str, step["phrases"]):
            key = phrase_key(text)
            self.with_sentences.discard(key)
            if step["action"] == "restore":
                self.phrases.pop(key, None)
                continue
            self.phrases[key] = text
            if step.get("sentences"):
                self.with_sentences.add(key)

    # -- deciding

    @classmethod
    def exclude(cls, workspace: Path, phrases: Iterable[str], *, sentences: bool = False) -> Exclusions:
        """Leave phrases out, in one step; `sentences`: with the sentences that hold them.

        Raises InputError where there are none or too many, StorageError when it cannot be written.
        """
        return cls._decide(workspace, {"action": "exclude", "phrases": list(phrases), "sentences": sentences})

    @classmethod
    def restore(cls, workspace: Path, phrases: Iterable[str]) -> Exclusions:
        """Take phrases back in, with their sentences. Raises as `exclude`."""
        return cls._decide(workspace, {"action": "restore", "phrases": list(phrases)})

    @classmethod
    def _decide(cls, workspace: Path, step: Step) -> Exclusions:
        count = len(step["phrases"])
        if not count:
            raise InputError("No phrase was chosen. Reload the page and try again.")
        if count > MOST:
            raise InputError(
                "{count:,} phrases are selected; up to {most:,} can be changed in one step. Narrow the filter.",
                count=count,
                most=MOST,
            )
        append_step(workspace / EXCLUSIONS_FILE, step)
        return cls.load(workspace)

    @classmethod
    def undo(cls, workspace: Path) -> Exclusions:
        """Take the last step back. Raises InputError where there is none."""
        append_undo(workspace / EXCLUSIONS_FILE, cls.load(workspace).steps)
        return cls.load(workspace)

    @property
    def last(self) -> str:
        """The last step in words, as a button says it; empty where there is none."""
        if not self.steps:
            return ""
        count = len(self.steps[-1]["phrases"])
        out = self.steps[-1]["action"] == "exclude"
        if count == 1:
            return Message("exclude {count:,} phrase" if out else "include {count:,} phrase again", count=count)
        return Message("exclude {count:,} phrases" if out else "include {count:,} phrases again", count=count)

    # -- honouring

    def content(self) -> list[list[str]]:
        """What holds, in one order, to be hashed; empty where nothing is left out."""
        return [sorted(self.phrases), sorted(self.with_sentences)] if self else []

    def sentence_content(self) -> list[str]:
        """The part of it that training pairs depend on."""
        return sorted(self.with_sentences)

    def holder(self, language: str) -> Callable[[str], bool]:
        """Whether a sentence is left out, since it holds a phrase that goes with its sentences."""
        if not self.with_sentences:
            return lambda _: False
        return Finder([self.phrases[key] for key in self.with_sentences], language).any

    def keep(self, phrases: Iterable[Phrase], language: str) -> list[Phrase]:
        """The phrases that stay: not left out themselves, and not around one that goes with its sentences."""
        held = self.holder(language)
        return [phrase for phrase in phrases if phrase.text not in self and not held(phrase.text)]
