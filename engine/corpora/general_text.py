"""The bundled samples of plain everyday text, with which methods contrast a style and on which forgetting is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.core.languages import language_message, same_language
from engine.corpora.bundled import bundled_samples
from engine.errors import CorpusError


def general_sentences(assets: Path, language: str, *, exclude: Sequence[str] = ()) -> list[str]:
    """The sentences of the language's general samples that are not in `exclude`; empty if none are bundled."""
    samples = [sample for sample in bundled_samples(assets) if sample.kind == "general" and same_language(sample.target, language)]
    lines = [line.strip() for sample in samples for file in sample.files for line in file.read_text(encoding="utf-8").splitlines()]
    excluded = {" ".join(text.split()) for text in exclude}
    return [line for line in dict.fromkeys(lines) if line and line not in excluded]


def general_domain(assets: Path, language: str, *, exclude: Sequence[str] = ()) -> list[str]:
    """The sentences of `general_sentences`, for methods that require them. Raises CorpusError if there are none."""
    sentences = general_sentences(assets, language, exclude=exclude)
    if not sentences:
        raise CorpusError(
            "Samples of a single domain also need general text, and none is bundled for {language}. Provide "
            "a second file of plain everyday sentences, and a domain label for each file (--domains).",
            language=language_message(language),
        )
    return sentences
