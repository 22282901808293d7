"""The types of a corpus: a sentence, the settings of an import, and the parts of a split."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.core.options import Options, option
from engine.corpora.inline_tags import INLINE_TAGS


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence of the user's text: `text` is in the target language, `source` its original if the file has both."""

    text: str
    source: str | None = None
    file: str = ""
    line: int = 0
    domain: str = ""


@dataclass(frozen=True)
class CorpusOptions(Options):
    """How samples are read and cleaned."""

    min_chars: int = option(2, "Shortest sentence kept, in characters.", low=1, high=1000)
    max_chars: int = option(1000, "Longest sentence kept, in characters, after splitting.", low=10, high=100_000)
    max_line_chars: int | None = option(
        None, "Longest line read, in characters; none: as the program's settings say.", low=100, advanced=True
    )
    normalization: str = option(
        "NFC",
        "Unicode form. NFC keeps full-width punctuation, NFKC turns it into ASCII.",
        choices=("NFC", "NFKC", "none"),
        advanced=True,
    )
    inline_tags: str = option(
        "strip",
        "Tags inside sentences, as <b> or those of TMX and XLIFF: strip takes them out, placeholders writes {1} for them.",
        choices=INLINE_TAGS,
    )
    max_sentences: int = option(
        100_000, "Most sentences used; of more, as many are taken evenly from all files.", low=100, advanced=True
    )
    split_sentences: bool = option(True, "Split lines that hold several sentences; bilingual lines stay whole.")
    join_wrapped_lines: bool = option(
        True, "Join the lines of a text file that was wrapped at a fixed width, as e-books often are."
    )
    deduplicate: bool = option(True, "Keep only the first of equal sentences.")
    domain_from_file: bool = option(False, "Take the file's name as the domain of sentences that have none.")
    check_language: bool = option(True, "Check that the sentences are in the target language.", advanced=True)


@dataclass(frozen=True)
class Split:
    """Disjoint parts of a corpus, each in the corpus's order; `notes` state which sizes differ from the requested ones."""

    train: list[Segment]
    valid: list[Segment]
    test: list[Segment]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SentencePair:
    """A source sentence and the user's sentence."""

    source: str
    target: str
    domain: str = ""
    synthetic: bool = True  # the source was written by the base
    support: float | None = None  # how well the source supports the target, for synthetic pairs
    general: bool = False  # general text as translated by the base, not a sentence of the user's
    plausibility: float = 1.0  # 0 to 1, that source and target have the same meaning (engine.evaluation.plausibility)
