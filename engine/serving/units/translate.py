"""Translates the units of a document: each distinct sentence once, in batches, with finished translations stored."""

from __future__ import annotations

import contextlib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.base.remote import base_arguments
from engine.core.flagged import packed, unpacked
from engine.core.progress import Progress, Quiet
from engine.core.remote_map import map_remotely
from engine.corpora.formats.documents.model import Result, Unit
from engine.corpora.formats.documents.placeholders import FAMILIES
from engine.corpora.terminology import Term
from engine.decoding.translate import length_batches
from engine.decoding.word_alignment import Alignment, align
from engine.errors import storage_errors
from engine.messages import Message
from engine.plugins import Plugin, PluginStack
from engine.serving.units.assemble import UnitSentence, assemble, needs_alignment
from engine.serving.units.mask import Prepared, mask, prepare, restore
from engine.serving.units.remote import TRANSLATE

SHARE = 0.95  # of the time for translation, the rest for alignment
PART = 64  # sentences aligned between progress updates


class Translator(ABC):
    """Translates and aligns sentences."""

    source: str
    target: str

    @abstractmethod
    def key(self) -> str:
        """A key that is equal exactly for translators that translate identically."""

    @abstractmethod
    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        """(indices, work) of the batches; each sentence is in exactly one batch."""

    @abstractmethod
    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        """Translate sentences; returns one translation per sentence."""

    def translate_remotely(self, parts: Sequence[list[str]], progress: Progress) -> Iterator[list[str]] | None:
        """The results of `translate` for each part, in order, from other machines; None if these take no parts."""
        return None

    def preparing(self, units: Sequence[Unit]) -> contextlib.AbstractContextManager[object]:
        """The context in which units are split into sentences, such as a lock to limit the load on a shared process."""
        return contextlib.nullcontext()

    @abstractmethod
    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        """The alignment of each (sentence, translation)."""


class BaseTranslator(Translator):
    """Translates with a base and optionally a plugin, with results identical to those of `base.translate`."""

    def __init__(
        self,
        base: BaseModel,
        plugin: Plugin | PluginStack | None = None,
        strength: float = 1.0,
        decoding: Decoding | None = None,
        bundle: str = "",
        terms: Sequence[Term] = (),
    ) -> None:
        self.terms = terms
        self.bundle = bundle  # the plugin's file if other machines can load it
        self.base, self.plugin, self.strength = base, plugin, strength
        self.decoding = decoding or base.decoding()
        self.source, self.target = base.source, base.target

    def key(self) -> str:
        plugins = getattr(self.plugin, "plugins", [self.plugin] if self.plugin else [])
        parts = [
            self.base.fingerprint(), self.base.precision, self.source, self.target,
            [plugin.folder.name if plugin.folder else plugin.name for plugin in plugins],
            getattr(self.plugin, "weights", None), self.strength if plugins else 0, self.decoding.to_mapping(),
            *((term.source, term.target) for term in self.terms),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        with self.base.lock:
            sizes = [len(ids) for ids in self.base.encode(list(sentences))]
        result = length_batches(sizes, self.decoding.batch_tokens)
        return [(batch, float(sum(sizes[i] for i in batch))) for batch in result]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        from engine.decoding.translate import translate

        return translate(
            self.base,
            list(sentences),
            self.plugin,
            strength=self.strength,
            decoding=self.decoding,
            progress=Quiet(progress),
            terms=self.terms,
        )

    def translate_remotely(self, parts: Sequence[list[str]], progress: Progress) -> Iterator[list[str]] | None:
        if self.terms or (self.plugin is not None and not self.bundle):
            return None
        options = {"bundle": self.bundle, "strength": self.strength, "decoding": self.decoding.to_mapping()}
        result = map_remotely(TRANSLATE, lambda: base_arguments(self.base) | options, parts, progress)
        return None if result is None else ([unpacked(text) for text in part] for part in result)

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        return align(self.base, pairs, progress=progress)


class TranslationCache:
    """Finished translations, stored in a file so that a stopped run can resume.

    The first line of the file is the key of the translator; for a different translator the file is removed. A line truncated
    by a crash is skipped.
    """

    def __init__(self, file: Path | None, key: str) -> None:
        self.file, self.key = file, key
        self.translations: dict[str, str] = {}
        if file is None or not file.exists():
            return
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        if lines[0] != json.dumps(key):
            file.unlink()
            return
        for line in lines[1:]:
            try:
                part = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(part, list):
                self.translations |= {text: unpacked(translation) for text, translation in part}

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Store further translations, all or none of them. Raises StorageError."""
        self.translations |= dict(pairs)
        if self.file is None:
            return
        with storage_errors("the translations", self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            is_new = not self.file.exists()
            rows = [(text, packed(translation)) for text, translation in pairs]
            with self.file.open("a", encoding="utf-8") as out:
                # Begin with a newline, since the last line may be truncated.
                out.write((json.dumps(self.key) if is_new else "") + "\n" + json.dumps(rows, ensure_ascii=False))


def translate_units(units: Sequence[Unit], translator: Translator, finished: TranslationCache, progress: Progress) -> list[Result]:
    """Translate units in one step of `progress`; returns one result per unit, in order.

    Raises Cancelled if `progress` is cancelled; finished translations are in `finished`.
    """
    progress.begin("Translating")
    prepared = []
    with translator.preparing(units):
        for i, unit in enumerate(units):
            if i % 64 == 0:
                progress.check()
            prepared.append(prepare(unit, translator.source))
        plans = [[(position, mask(result.text, *position)) for position in result.sentences] for result in prepared]
    _translate([masked.text for plan in plans for _, masked in plan], translator, finished, progress)
    sentences = [
        [UnitSentence(position, masked, finished.translations[masked.text]) for position, masked in plan] for plan in plans
    ]
    _try_again(prepared, sentences, translator, finished, Quiet(progress))
    alignments = _alignments(prepared, sentences, translator, progress)
    results = []
    for i, (result, unit_sentences) in enumerate(zip(prepared, sentences, strict=True)):
        if i % 64 == 0:
            progress.check()
        results.append(assemble(result, unit_sentences, alignments.get(i, {}), translator.target))
    return results


def _translate(texts: Sequence[str], translator: Translator, finished: TranslationCache, progress: Progress) -> None:
    """Translate each distinct unfinished text, batch by batch."""
    different = list(dict.fromkeys(texts))
    batches = translator.batches(different) if different else []
    total = sum(work for _, work in batches)
    done = 0.0
    sentences = 0
    # The batches are the same after a stop as without one, so that the results are bit-identical.
    parts = [[different[i] for i in batch] for batch, _ in batches]
    missing = [part for part in parts if any(text not in finished.translations for text in part)]
    elsewhere = translator.translate_remotely(missing, progress)
    for part, (batch, work) in zip(parts, batches, strict=True):
        progress.advance(SHARE * done / total, 1.0, Message("{done:,} of {all:,} sentences", done=sentences, all=len(different)))
        if any(text not in finished.translations for text in part):
            translations = translator.translate(part, progress) if elsewhere is None else next(elsewhere)
            finished.add(list(zip(part, translations, strict=True)))
        done += work
        sentences += len(batch)
    progress.advance(SHARE, 1.0, f"{sentences:,} sentences")


def _try_again(
    prepared: Sequence[Prepared],
    sentences: list[list[UnitSentence]],
    translator: Translator,
    finished: TranslationCache,
    progress: Progress,
) -> None:
    """Retry sentences with lost or duplicated placeholders with other stand-ins; keep the better translation."""
    for family in range(1, len(FAMILIES)):
        retries = [
            (i, k, mask(prepared[i].text, *sentence.span, family=family))
            for i, unit_sentences in enumerate(sentences)
            for k, sentence in enumerate(unit_sentences)
            if _trouble(sentence)
        ]
        retries = [(i, k, masked) for i, k, masked in retries if len(masked.names) == len(sentences[i][k].masked.names)]
        _translate([masked.text for _, _, masked in retries], translator, finished, progress)
        for i, k, masked in retries:
            retry = UnitSentence(sentences[i][k].span, masked, finished.translations[masked.text])
            if _trouble(retry) < _trouble(sentences[i][k]):
                sentences[i][k] = retry


def _trouble(sentence: UnitSentence) -> int:
    back = restore(sentence.translation, sentence.masked.names)
    return 2 * len(back.lost) + back.doubled


def _alignments(
    prepared: Sequence[Prepared], sentences: Sequence[Sequence[UnitSentence]], translator: Translator, progress: Progress
) -> Mapping[int, dict[int, Alignment]]:
    """{unit index: {sentence index: alignment}} of the sentences that need one."""
    indices = [
        (i, k)
        for i, unit_sentences in enumerate(sentences)
        if any(sentence.translation != sentence.masked.text for sentence in unit_sentences)
        for k, sentence in enumerate(unit_sentences)
        if needs_alignment(prepared[i], sentence)
    ]
    pairs = [(sentences[i][k].masked.text, sentences[i][k].translation) for i, k in indices]
    result: dict[int, dict[int, Alignment]] = {}
    different = list(dict.fromkeys(pairs))
    aligned: dict[tuple[str, str], Alignment] = {}
    for begin in range(0, len(different), PART):
        progress.advance(SHARE + (1 - SHARE) * begin / len(different), 1.0, "placing tags")
        part = different[begin : begin + PART]
        aligned |= zip(part, translator.align(part, Quiet(progress)), strict=True)
    for (i, k), pair in zip(indices, pairs, strict=True):
        result.setdefault(i, {})[k] = aligned[pair]
    return result
