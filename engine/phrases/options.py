"""Settings of the phrase extraction."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option
from engine.phrases.languages import plain_code


@dataclass(frozen=True)
class PhraseOptions(Options):
    """Phrases taken from the samples."""

    l_max: int | None = option(
        None, "Longest phrase, in the parser's words; none: 8 for English, 10 for all other languages.", low=1, high=200
    )
    min_length: int = option(1, "Shortest phrase, in the parser's words.", low=1, high=200)
    min_count: int = option(1, "Keep phrases that occur at least this often.", low=1)
    parser: str = option(
        "auto",
        "What finds the phrases; auto takes the first that is installed, in the order given here.",
        choices=("auto", "constituency", "dependency", "statistical"),
    )
    download: bool = option(False, "Let stanza download the parser of the language when it is not on disk.")

    def longest(self, language: str) -> int:
        """The maximum phrase length for a language: l_max, else the values of paper 1 (8 for English, 10 otherwise)."""
        return self.l_max or (8 if plain_code(language) == "en" else 10)
