"""The units of a document through a translator: each different sentence once, in batches, kept as they are finished."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.decoding.align import Alignment, align
from engine.decoding.options import Decoding
from engine.decoding.translate import length_batches
from engine.documents.assemble import Sentence, assemble, needs_alignment
from engine.documents.model import Result, Unit
from engine.documents.placeholders import FAMILIES
from engine.documents.prepare import Prepared, mask, prepare, restore
from engine.errors import storage_errors
from engine.progress import Progress
from engine.spread import offered
from engine.stages import TRANSLATE, base_arguments

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin, PluginStack

__all__ = ["BaseTranslator", "Finished", "Translator", "translate_units"]

SHARE = 0.95  # of the time is translation, the rest is alignment
PART = 64  # sentences aligned between two looks at the progress


class Translator(ABC):
    """What turns sentences of one language into those of another."""

    source: str
    target: str

    @abstractmethod
    def key(self) -> str:
        """Equal exactly where two translators translate alike."""

    @abstractmethod
    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        """Which sentences are translated together, with the work that they are; every one in one batch."""

    @abstractmethod
    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        """One translation a sentence."""

    def spread(self, parts: Sequence[list[str]], progress: Progress) -> Iterator[list[str]] | None:
        """What `translate` gives for each part, in order, where other machines do them; None where they do not."""
        return None

    @abstractmethod
    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        """The alignment of each (sentence, translation)."""


class BaseTranslator(Translator):
    """A base, customized or not. What it gives for a list of sentences is what `base.translate` gives, bit for bit."""

    def __init__(
        self,
        base: BaseModel,
        plugin: Plugin | PluginStack | None = None,
        strength: float = 1.0,
        decoding: Decoding | None = None,
        bundle: str = "",
    ) -> None:
        self.bundle = bundle  # the plugin's file, where other machines may load it too
        self.base, self.plugin, self.strength = base, plugin, strength
        self.decoding = decoding or Decoding()
        self.source, self.target = base.source, base.target

    def key(self) -> str:
        plugins = getattr(self.plugin, "plugins", [self.plugin] if self.plugin else [])
        parts = [
            self.base.fingerprint(), self.base.precision, self.source, self.target,
            [plugin.folder.name if plugin.folder else plugin.name for plugin in plugins],
            getattr(self.plugin, "weights", None), self.strength if plugins else 0, self.decoding.to_mapping(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        with self.base.lock:
            sizes = [len(ids) for ids in self.base.encode(list(sentences))]
        found = length_batches(sizes, self.decoding.batch_tokens)
        return [(batch, float(sum(sizes[i] for i in batch))) for batch in found]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        return self.base.translate(
            list(sentences), self.plugin, strength=self.strength, decoding=self.decoding, progress=Checked(progress)
        )

    def spread(self, parts: Sequence[list[str]], progress: Progress) -> Iterator[list[str]] | None:
        if self.plugin is not None and not self.bundle:
            return None
        own = {"bundle": self.bundle, "strength": self.strength, "decoding": self.decoding.to_mapping()}
        return offered(TRANSLATE, lambda: base_arguments(self.base) | own, parts, progress)

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        return align(self.base, pairs, progress=progress)


class Checked(Progress):
    """Hears of a stop, and reports nothing: what is inside of a batch is not seen."""

    def __init__(self, whole: Progress) -> None:
        super().__init__()
        self.whole = whole

    def check(self) -> None:
        self.whole.check()


class Finished:
    """Translations that are done, kept in a file so that a run that was stopped goes on from there.

    The file's first line says whose they are; with another translator it is begun anew. A line that a crash cut short is
    passed over.
    """

    def __init__(self, file: Path | None, key: str) -> None:
        self.file, self.key = file, key
        self.known: dict[str, str] = {}
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
                self.known |= dict(part)

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Keep some more, all or none of them. Raises StorageError."""
        self.known |= dict(pairs)
        if self.file is None:
            return
        with storage_errors("the translations", self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self.file.exists()
            with self.file.open("a", encoding="utf-8") as out:
                # A new line first: the last one may have been cut short.
                out.write((json.dumps(self.key) if fresh else "") + "\n" + json.dumps(pairs, ensure_ascii=False))


def translate_units(
    units: Sequence[Unit],
    translator: Translator,
    finished: Finished,
    progress: Progress,
) -> list[Result]:
    """One result a unit, in order; one step of `progress`.

    Raises Cancelled when `progress` says so; what was translated is in `finished`.
    """
    progress.begin("Translating")
    prepared = []
    for i, unit in enumerate(units):
        if i % 64 == 0:
            progress.check()
        prepared.append(prepare(unit, translator.source))
    plans = [[(place, mask(found.text, *place)) for place in found.sentences] for found in prepared]
    _translate([masked.text for plan in plans for _, masked in plan], translator, finished, progress)
    sentences = [[Sentence(place, masked, finished.known[masked.text]) for place, masked in plan] for plan in plans]
    _try_again(prepared, sentences, translator, finished, Checked(progress))
    alignments = _alignments(prepared, sentences, translator, progress)
    results = []
    for i, (found, own) in enumerate(zip(prepared, sentences, strict=True)):
        if i % 64 == 0:
            progress.check()
        results.append(assemble(found, own, alignments.get(i, {}), translator.target))
    return results


def _translate(texts: Sequence[str], translator: Translator, finished: Finished, progress: Progress) -> None:
    """Translate each different text that is not finished yet, batch by batch."""
    different = list(dict.fromkeys(texts))
    batches = translator.batches(different) if different else []
    whole = sum(work for _, work in batches)
    done = 0.0
    sentences = 0
    # The same batches after a stop as without one, so that the result is the same to the bit.
    parts = [[different[i] for i in batch] for batch, _ in batches]
    missing = [part for part in parts if any(text not in finished.known for text in part)]
    elsewhere = translator.spread(missing, progress)
    for part, (batch, work) in zip(parts, batches, strict=True):
        progress.advance(SHARE * done / whole, 1.0, f"{sentences:,} of {len(different):,} sentences")
        if any(text not in finished.known for text in part):
            made = translator.translate(part, progress) if elsewhere is None else next(elsewhere)
            finished.add(list(zip(part, made, strict=True)))
        done += work
        sentences += len(batch)
    progress.advance(SHARE, 1.0, f"{sentences:,} sentences")


def _try_again(
    prepared: Sequence[Prepared],
    sentences: list[list[Sentence]],
    translator: Translator,
    finished: Finished,
    progress: Progress,
) -> None:
    """Where a placeholder was lost, translate the sentence again with other stand-ins; kept where it went better."""
    for family in range(1, len(FAMILIES)):
        places = [
            (i, k, mask(prepared[i].text, *sentence.place, family=family))
            for i, own in enumerate(sentences)
            for k, sentence in enumerate(own)
            if _trouble(sentence)
        ]
        places = [(i, k, masked) for i, k, masked in places if len(masked.names) == len(sentences[i][k].masked.names)]
        _translate([masked.text for _, _, masked in places], translator, finished, progress)
        for i, k, masked in places:
            fresh = Sentence(sentences[i][k].place, masked, finished.known[masked.text])
            if _trouble(fresh) < _trouble(sentences[i][k]):
                sentences[i][k] = fresh


def _trouble(sentence: Sentence) -> int:
    back = restore(sentence.translation, sentence.masked.names)
    return 2 * len(back.lost) + back.doubled


def _alignments(
    prepared: Sequence[Prepared], sentences: Sequence[Sequence[Sentence]], translator: Translator, progress: Progress
) -> Mapping[int, dict[int, Alignment]]:
    """{unit: {sentence: alignment}} of those that need one."""
    wanted = [
        (i, k)
        for i, own in enumerate(sentences)
        if any(sentence.translation != sentence.masked.text for sentence in own)
        for k, sentence in enumerate(own)
        if needs_alignment(prepared[i], sentence)
    ]
    pairs = [(sentences[i][k].masked.text, sentences[i][k].translation) for i, k in wanted]
    found: dict[int, dict[int, Alignment]] = {}
    different = list(dict.fromkeys(pairs))
    aligned: dict[tuple[str, str], Alignment] = {}
    for begin in range(0, len(different), PART):
        progress.advance(SHARE + (1 - SHARE) * begin / len(different), 1.0, "placing tags")
        part = different[begin : begin + PART]
        aligned |= zip(part, translator.align(part, Checked(progress)), strict=True)
    for (i, k), pair in zip(wanted, pairs, strict=True):
        found.setdefault(i, {})[k] = aligned[pair]
    return found
