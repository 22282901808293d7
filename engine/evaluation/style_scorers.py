"""The scorers of a style, a language model and a classifier, trained once from a project's samples and stored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base import BaseModel
from engine.core.atomic_files import read_json, write_json
from engine.core.progress import Progress
from engine.core.step_cache import content_hash
from engine.corpora.general_text import general_sentences
from engine.errors import CorpusError, InputError
from engine.evaluation.classifier import StyleClassifier
from engine.evaluation.perplexity import StyleLanguageModel

ABOUT = "style.json"
MADE = 2  # to be raised when training changes, so that stored scorers are trained again
MOST = 2000  # maximum number of style sentences for the classifier
REWORDED = 300  # how many of them are put into the base's own words
STEPS = range(3)


@dataclass(frozen=True)
class StyleScorers:
    """Scorers of translations that need only the samples. `classifier` is None if there is too little text to train it; `note` then
    says why.
    """

    language_model: StyleLanguageModel
    classifier: StyleClassifier | None
    note: str = ""

    def to_mapping(self) -> dict[str, object]:
        """Facts about the scorers for readers of the figures."""
        return {
            "sentences": self.language_model.sentences,
            "held_out_perplexity": round(self.language_model.held_out, 1),
            "unit": self.language_model.unit,
            "accuracy": self.classifier.accuracy.to_mapping() if self.classifier else None,
            "note": self.note,
        }


def learn_style(
    texts: Sequence[str],
    base: BaseModel,
    folder: Path,
    assets: Path,
    *,
    backward: BaseModel | None = None,
    sources: Sequence[str | None] = (),
    progress: Progress | None = None,
    steps: range = STEPS,
) -> StyleScorers:
    """The scorers of these sentences in the base's target language, loaded from `folder` if stored there, else trained.

    `sources`, one per text, may contain the texts' sources; missing ones are written by `backward`, if given. Raises CorpusError on
    too few sentences, Cancelled, StorageError.
    """
    progress = progress or Progress()
    cached = load_style(texts, base, folder)
    if cached is not None:
        return cached
    folder.mkdir(parents=True, exist_ok=True)
    progress.begin("Training the style language model", steps.start, steps.stop)
    language_model = StyleLanguageModel.learn(texts, base.target)
    indices = random.Random(1).sample(range(len(texts)), min(MOST, len(texts)))
    style = [" ".join(texts[i].split()) for i in indices]
    general = [line for line in general_sentences(assets, base.target) if line not in set(style)]
    style_sources = [sources[i] if sources else None for i in indices]
    progress.begin("Putting samples into the base's own words", steps.start + 1, steps.stop)
    reworded = in_own_words(style[:REWORDED], style_sources[:REWORDED], base, backward, progress)
    progress.begin("Training the style classifier", steps.start + 2, steps.stop)
    classifier, note = None, ""
    try:
        classifier = StyleClassifier.learn(base, style, general, reworded, progress=progress)
    except CorpusError as error:
        note = error.message
    language_model.save(folder)
    if classifier is not None:
        classifier.save(folder)
    write_json(
        folder / ABOUT, {"stamp": style_key(texts, base), "classifier": classifier is not None, "note": note}, "the style's scorers"
    )
    return StyleScorers(language_model, classifier, note)


def load_style(texts: Sequence[str], base: BaseModel, folder: Path) -> StyleScorers | None:
    """The scorers stored in `folder`, if they were trained on these sentences over this base; else None."""
    metadata = read_json(folder / ABOUT)
    if metadata.get("stamp") != style_key(texts, base):
        return None
    try:
        classifier = StyleClassifier.load(folder, base) if metadata.get("classifier") else None
        return StyleScorers(StyleLanguageModel.load(folder), classifier, str(metadata.get("note", "")))
    except InputError:
        return None


def style_key(texts: Sequence[str], base: BaseModel) -> str:
    return content_hash(MADE, base.fingerprint(), base.target, list(texts))


def in_own_words(
    style: Sequence[str], style_sources: Sequence[str | None], base: BaseModel, backward: BaseModel | None, progress: Progress
) -> list[tuple[int, str]]:
    """(index, the sentence in the base's words) by translating back and forth; sentences without a source are left out."""
    from engine.decoding.greedy_search import back_translate

    lacking = [i for i, source in enumerate(style_sources) if not source]
    sources = {i: str(source) for i, source in enumerate(style_sources) if source}
    if backward is not None and lacking:
        generated = back_translate(backward, [style[i] for i in lacking], progress=progress)
        sources |= {i: source for i, source in zip(lacking, generated, strict=True) if source.strip()}
    order = sorted(sources)
    translations = back_translate(base, [sources[i] for i in order], progress=progress)
    return [(i, text) for i, text in zip(order, translations, strict=True) if text.strip() and text != style[i]]
