"""Phrases that the user excludes from the memory and, with their sentences, from training.

excluded_phrases.jsonl of a workspace is an append-only list of steps, one line per click, so each step can be undone. A phrase
is identified by its key (`phrase_key`), so that a decision remains valid after samples were added. A step excludes phrases
only, or phrases with their sentences: then no training pair whose target contains one of them is used, and no longer phrase
that contains one is stored.
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
    """The current state: excluded phrases by key with their text, those excluded with their sentences, and the steps."""

    phrases: dict[str, str] = field(default_factory=dict)
    with_sentences: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.phrases)

    def __contains__(self, text: str) -> bool:
        return phrase_key(text) in self.phrases

    @classmethod
    def load(cls, workspace: Path) -> Exclusions:
        """The decisions in this workspace. Incomplete or unknown lines are skipped."""
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
        """Exclude phrases, in one step; `sentences`: with the sentences that contain them.

        Raises InputError if there are none or too many, StorageError if the step cannot be written.
        """
        return cls._decide(workspace, {"action": "exclude", "phrases": list(phrases), "sentences": sentences})

    @classmethod
    def restore(cls, workspace: Path, phrases: Iterable[str]) -> Exclusions:
        """Include phrases again, with their sentences. Raises as `exclude`."""
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
        """Undo the last step. Raises InputError if there is none."""
        append_undo(workspace / EXCLUSIONS_FILE, cls.load(workspace).steps)
        return cls.load(workspace)

    @property
    def last(self) -> str:
        """The last step in the words of its button; empty if there is none."""
        if not self.steps:
            return ""
        count = len(self.steps[-1]["phrases"])
        out = self.steps[-1]["action"] == "exclude"
        if count == 1:
            return Message("exclude {count:,} phrase" if out else "include {count:,} phrase again", count=count)
        return Message("exclude {count:,} phrases" if out else "include {count:,} phrases again", count=count)

    # -- applying

    def content(self) -> list[list[str]]:
        """The current state in a fixed order, for hashing; empty if nothing is excluded."""
        return [sorted(self.phrases), sorted(self.with_sentences)] if self else []

    def sentence_content(self) -> list[str]:
        """The part of the state that training pairs depend on."""
        return sorted(self.with_sentences)

    def holder(self, language: str) -> Callable[[str], bool]:
        """A function that returns whether a sentence contains a phrase that is excluded with its sentences."""
        if not self.with_sentences:
            return lambda _: False
        return Finder([self.phrases[key] for key in self.with_sentences], language).any

    def keep(self, phrases: Iterable[Phrase], language: str) -> list[Phrase]:
        """The phrases that are neither excluded nor contain one that is excluded with its sentences."""
        contains_excluded = self.holder(language)
        return [phrase for phrase in phrases if phrase.text not in self and not contains_excluded(phrase.text)]
