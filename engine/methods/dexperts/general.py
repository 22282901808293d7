"""Plain everyday sentences of a language, from the samples that come with the program."""

from __future__ import annotations

import random
from pathlib import Path

from engine.errors import OptionError
from engine.languages import same_language

__all__ = ["general_sentences"]


def general_sentences(assets: Path, language: str, count: int) -> list[str]:
    """`count` sentences, drawn once and again from the start where there are too few.

    Raises OptionError where no general sample of the language comes with the program.
    """
    from engine.samples import bundled_samples

    known = [one for one in bundled_samples(assets) if one.kind == "general" and same_language(one.target, language)]
    lines = [
        line.strip() for one in known for file in one.files for line in file.read_text(encoding="utf-8").splitlines()
    ]
    lines = [line for line in lines if line]
    if not lines:
        raise OptionError(
            f"anti: no general sample of {language} comes with the program. Let the anti-expert learn from translations."
        )
    random.Random("general").shuffle(lines)
    return [lines[i % len(lines)] for i in range(count)]
