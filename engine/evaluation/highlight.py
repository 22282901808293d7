"""The parts of a sentence's translations that differ from the base alone: what plugins replaced, and with what."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evaluation.diff import word_diff

Run = tuple[str, bool]  # text, and whether it differs


def marks(texts: Sequence[str | None], language: str) -> list[list[Run]]:
    """Runs of each system's text; joined, they are the text. The first system is the base alone, in which every part that any
    plugin replaced is marked as different.
    """
    vanilla = texts[0]
    if vanilla is None:
        return [[] if text is None else [(text, False)] for text in texts]
    replaced = [False] * len(vanilla)
    results: list[list[Run]] = []
    for text in texts[1:]:
        runs: list[Run] = []
        at = 0
        for kind, before, after in word_diff(vanilla, text, language) if text is not None else ():
            if kind != "equal":
                replaced[at : at + len(before)] = [True] * len(before)
            if after:
                runs.append((after, kind != "equal"))
            at += len(before)
        results.append(runs)
    return [grouped(vanilla, replaced), *results]


def grouped(text: str, flags: Sequence[bool]) -> list[Run]:
    """Runs of adjacent characters with the same flag."""
    runs: list[Run] = []
    for character, flag in zip(text, flags, strict=True):
        if runs and runs[-1][1] == flag:
            runs[-1] = (runs[-1][0] + character, flag)
        else:
            runs.append((character, flag))
    return runs
