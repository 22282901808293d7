"""General sentences from which an anti-expert learns."""

from __future__ import annotations

import random
from pathlib import Path

from engine.core.languages import language_message
from engine.corpora.general_text import general_sentences
from engine.errors import OptionError


def draw_general(assets: Path, language: str, count: int) -> list[str]:
    """`count` sentences in a fixed random order, repeated if there are too few.

    Raises OptionError if no general sample of the language is bundled.
    """
    lines = general_sentences(assets, language)
    if not lines:
        raise OptionError(
            "anti: no general sample of {language} is bundled. Let the anti-expert learn from translations.",
            language=language_message(language),
        )
    random.Random("general").shuffle(lines)
    return [lines[i % len(lines)] for i in range(count)]
