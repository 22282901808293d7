"""Settings for training a parser; the default sizes keep the whole set of a language below 15 MB."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class ParserTraining(Options):
    """Training of a parser."""

    package: str = option("tailor", "Name of the set, as stanza's list of models shows it.")
    seed: int = option(1, "Start of all random numbers.", low=0, high=2**31 - 1)
    held_out: float = option(
        0.05,
        "Share of the sentences for choosing the best model, and again for the test, where no -dev and -test files are given.",
        low=0.01,
        high=0.4,
    )
    vector_size: int = option(64, "Numbers a word vector has.", low=8, high=300)
    vector_words: int = option(12_000, "Words that get a vector, the most frequent first.", low=100, high=500_000)
    vector_sentences: int = option(120_000, "Sentences of the text that vectors are learnt from, spread evenly over it.", low=100)
    word_frequency: int = option(20, "Least frequency of a word taken from the word list, where the list gives frequencies.", low=0)
    tokenize_steps: int = option(1500, "Updates of the tokenizer.", low=1)
    mwt_epochs: int = option(12, "Passes of the part that opens contractions (zum, don't).", low=1)
    pos_steps: int = option(600, "Updates of the tagger.", low=1)
    depparse_steps: int = option(1200, "Updates of the dependency parser.", low=1)
    constituency_epochs: int = option(18, "Passes of the constituency parser.", low=1)
    hidden: int = option(128, "Width of tagger and parsers.", low=16, high=1024)
    minutes: int = option(0, "Longest time for one part; the best model so far is kept then; 0: no limit.", low=0, advanced=True)
