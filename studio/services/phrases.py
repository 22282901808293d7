"""The data of the page Phrases: the phrases of a project as columns, and the view given in the page's address.

Independent of Gradio. Everything is cached until a file changes, so that browsing 200,000 phrases stays fast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from engine.core.atomic_files import write_jsonl
from engine.core.numerals import whole_number
from engine.core.settings import Settings
from engine.core.workspace import latest_file
from engine.errors import TailorError
from engine.phrases.exclusions import EXCLUSIONS_FILE, Exclusions
from engine.phrases.keyness import LEVELS, level
from engine.phrases.occurrences import phrase_key
from engine.phrases.table import TABLE_FILE, PhraseTable, layers_of, open_table
from engine.store import ProjectRow
from studio.i18n.translate import mark
from studio.services.files import read_rows

ORDERS = {mark("most typical"): "typical", mark("most frequent"): "times", mark("longest"): "long", mark("shortest"): "short"}
SHOWS = {mark("in use"): "used", mark("excluded"): "out", mark("all"): "all"}
SOURCES_FILE = "phrase_sources.jsonl"  # back-translations requested on the page
LEAST_TIMES = 3  # occurrences required for a phrase to count as typical
FEW = 20  # up to this number, phrases are searched one by one
PAGE = 25  # rows of the table


@dataclass(frozen=True)
class PhraseView:
    """Filters, order and selection of the page. Lengths are in tokens, 0: no limit; layers and sentences count from 0, -1: any."""

    words: str = ""
    low: int = 0
    high: int = 0
    layer: int = -1
    order: str = "typical"
    show: str = "used"
    start: int = 0
    phrase: str = ""
    sentence: int = -1

    @classmethod
    def of(cls, values: Mapping[str, Any] | str) -> PhraseView:
        """Create a view from address parameters, ignoring invalid ones."""
        parameters = dict(parse_qsl(values)) if isinstance(values, str) else dict(values)
        result: dict[str, Any] = {}
        for item in dataclasses.fields(cls):
            value = parameters.get(item.name)
            if value is None:
                continue
            if item.type == "int":
                number = whole_number(value) if str(value) != "-1" else -1
                if number is not None:
                    result[item.name] = number
            else:
                result[item.name] = str(value)[:500]
        if result.get("order") not in ORDERS.values():
            result.pop("order", None)
        if result.get("show") not in SHOWS.values():
            result.pop("show", None)
        return cls(**result)

    def but(self, **changes: Any) -> PhraseView:
        return dataclasses.replace(self, **changes)

    def query(self) -> str:
        """The address parameters of the view, without default values."""
        default = PhraseView()
        parameters = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return urlencode({name: value for name, value in parameters.items() if value != getattr(default, name)})

    @property
    def filtered(self) -> bool:
        return bool(self.words or self.low or self.high or self.layer >= 0)


@dataclass(frozen=True)
class PhraseListRow:
    """One phrase. `layer` is -1 if it is excluded; `ratio` is that of `engine.phrases.keyness`, None without general text."""

    text: str
    length: int
    count: int
    label: str
    layer: int
    source: str = ""
    excluded: bool = False
    own: int = 0
    general: int = 0
    per_domain: tuple[tuple[str, int, int], ...] = ()  # name, occurrences, words of the domain
    words: int = 0
    general_words: int = 0
    ratio: float | None = None
    low: float = 0.0
    high: float = 0.0
    sure: bool = False
    log_likelihood: float = 0.0

    @property
    def significance(self) -> str:
        return level(self.log_likelihood)


class TableIndex:
    """Indexes of a phrase table that do not depend on exclusions."""

    def __init__(self, table: PhraseTable) -> None:
        self.table = table

    @cached_property
    def index_by_text(self) -> dict[str, int]:
        return {" ".join(text.split()): index for index, text in enumerate(self.table.folded)}

    @cached_property
    def orders(self) -> dict[str, np.ndarray]:
        table = self.table
        times, longest = -table.counts, -table.lengths.astype(np.int64)
        key = table.keyness
        towards = np.where(key.log_ratio > 0, key.log_likelihood, -key.log_likelihood)
        # Typical phrases of several tokens come first, then single tokens, then phrases that are too rare or not typical.
        often = (table.counts >= LEAST_TIMES) & (towards >= LEVELS[-1][0])
        group = np.where(often & (table.lengths > 1), 0, np.where(often, 1, 2))
        typical = (longest, times, -towards, -key.value, group) if table.general_words else (longest, times)
        return {
            "typical": np.lexsort(typical),
            "times": np.lexsort((longest, times)),
            "long": np.lexsort((times, longest)),
            "short": np.lexsort((times, -longest)),
        }


class Phrases:
    """The phrases of a project with the user's decisions; rebuilt whenever a file changes."""

    def __init__(self, index: TableIndex, sources: Sequence[str], exclusions: Exclusions, layers: int, language: str) -> None:
        self.index, self.table, self.sources, self.exclusions = index, index.table, sources, exclusions
        self.layer_count, self.language = layers, language
        self._selected: tuple[PhraseView | None, np.ndarray] = (None, np.empty(0, dtype=np.int64))  # the last selection

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def excluded(self) -> np.ndarray:
        """(n,) whether each phrase is excluded: by the user, or because it contains a phrase excluded with its sentences."""
        out = np.zeros(len(self.table), dtype=bool)
        index_by_text = self.index.index_by_text
        for key in self.exclusions.phrases:
            if key in index_by_text:
                out[index_by_text[key]] = True
        contains_excluded = self.exclusions.holder(self.language)
        firsts = [key.split(" ", maxsplit=1)[0] for key in self.exclusions.with_sentences]
        if len(firsts) > FEW:
            firsts = [""]  # check every phrase once
        for first in firsts:
            for index, text in enumerate(self.table.folded):
                if first in text and not out[index]:  # a cheap pre-filter
                    out[index] = contains_excluded(self.table.texts[index])
        return out

    @cached_property
    def layers(self) -> np.ndarray:
        """(n,) the decoder layer that reads each phrase, -1 if none does."""
        result = np.full(len(self.table), -1, dtype=np.int64)
        selected = ~self.excluded
        result[selected] = layers_of(self.table.lengths[selected], self.layer_count)
        return result

    def find(self, text: str) -> int | None:
        """The index of a phrase, ignoring case; None if it is not in the table."""
        return self.index.index_by_text.get(phrase_key(text))

    def select(self, view: PhraseView) -> np.ndarray:
        """The indices of the phrases that match a view, in its order."""
        filters = view.but(start=0, phrase="", sentence=-1)
        selected = self._selected
        if selected[0] != filters:
            self._selected = selected = (filters, self._select(filters))
        return selected[1]

    def _select(self, view: PhraseView) -> np.ndarray:
        table = self.table
        fits = np.ones(len(table), dtype=bool)
        if view.show != "all":
            fits &= self.excluded if view.show == "out" else ~self.excluded
        if view.low:
            fits &= table.lengths >= view.low
        if view.high:
            fits &= table.lengths <= view.high
        if view.layer >= 0:
            fits &= self.layers == view.layer
        words = view.words.strip().casefold()
        if words:
            fits &= np.fromiter((words in text for text in table.folded), dtype=bool, count=len(table)) | np.fromiter(
                (words in text for text in self._folded_sources), dtype=bool, count=len(table)
            )
        order = self.index.orders[view.order]
        return order[fits[order]]

    def page(self, view: PhraseView) -> list[PhraseListRow]:
        """The rows of the table page that starts at `view.start`."""
        return [self.row(int(position)) for position in self.select(view)[view.start : view.start + PAGE]]

    def on_a_page(self, view: PhraseView) -> PhraseView:
        """The view with `start` moved to an existing page."""
        return view.but(start=max(0, min(view.start, (len(self.select(view)) - 1) // PAGE * PAGE)))

    def texts(self, view: PhraseView) -> list[str]:
        """All phrases that match a view."""
        return [self.table.texts[int(position)] for position in self.select(view)]

    def first_chosen(self, view: PhraseView) -> PhraseView:
        """The view with the first phrase of its table selected, if any."""
        indices = self.select(view)
        return view.but(phrase=self.table.texts[int(indices[0])], sentence=-1) if len(indices) else view

    def usable(self, view: PhraseView) -> PhraseView:
        """The view in an available order: without general text, phrases cannot be ordered by typicality."""
        return view.but(order="times") if view.order == "typical" and not self.table.general_words else view

    @cached_property
    def _folded_sources(self) -> list[str]:
        return [text.casefold() for text in self.sources]

    def row(self, index: int) -> PhraseListRow:
        """The table row of one phrase."""
        table, key = self.table, self.table.keyness
        return PhraseListRow(
            text=table.texts[index],
            length=int(table.lengths[index]),
            count=int(table.counts[index]),
            label=table.label_names[table.labels[index]],
            layer=int(self.layers[index]),
            source=self.sources[index],
            excluded=bool(self.excluded[index]),
            own=int(table.own[index]),
            general=int(table.general[index]),
            per_domain=tuple(zip(table.domains, table.by_domain[index].tolist(), table.words, strict=True)),
            words=sum(table.words),
            general_words=table.general_words,
            ratio=float(key.log_ratio[index]) if table.general_words else None,
            low=float(key.low[index]),
            high=float(key.high[index]),
            sure=bool(key.value[index]),
            log_likelihood=float(key.log_likelihood[index]),
        )


def phrases_of(workspace: Path, project: ProjectRow, settings: Settings, layers: int) -> Phrases | None:
    """The phrases of a project; None while there are none."""
    if not (workspace / "phrases.jsonl").is_file() or not (workspace / "corpus.jsonl").is_file():
        return None
    try:
        table = _table(workspace, modified_times(workspace, "phrases.jsonl"), project.target, settings.assets_dir).table
    except TailorError:  # being written
        return None
    modified = modified_times(workspace, EXCLUSIONS_FILE, SOURCES_FILE)
    return _phrases(workspace, table.made_from, project.target, settings.assets_dir, modified, pairs_of(workspace), layers)


def version_of(workspace: Path) -> str:
    """A string that changes whenever anything shown on the page changes."""
    names = ("phrases.jsonl", TABLE_FILE, EXCLUSIONS_FILE, SOURCES_FILE)
    return "-".join(map(str, (*modified_times(workspace, *names), pairs_of(workspace)[1])))


def pairs_of(workspace: Path) -> tuple[Path, int]:
    """The phrase pairs of the latest run that produced some, and their modification time in nanoseconds (0 if none)."""
    file = latest_file(workspace, "method/phrase_pairs.jsonl")
    return file, file.stat().st_mtime_ns if file.exists() else 0


def modified_times(workspace: Path, *names: str) -> tuple[int, ...]:
    return tuple(path.stat().st_mtime_ns if (path := workspace / name).exists() else 0 for name in names)


@lru_cache(maxsize=4)
def _table(workspace: Path, modified: tuple[int, ...], language: str, assets: Path) -> TableIndex:
    return TableIndex(open_table(workspace, language, assets))


@lru_cache(maxsize=4)
def _phrases(
    workspace: Path, made_from: str, language: str, assets: Path, modified: tuple[int, ...], pairs: tuple[Path, int], layers: int
) -> Phrases:
    index = _table(workspace, modified_times(workspace, "phrases.jsonl"), language, assets)
    sources = {row.get("target"): row.get("source") for row in read_rows(workspace / SOURCES_FILE)}
    sources |= {row.get("target"): row.get("source") for row in read_rows(pairs[0])}
    texts = [str(sources.get(text) or "") for text in index.table.texts]
    return Phrases(index, texts, Exclusions.load(workspace), layers, language)


def own_sources(workspace: Path, translations: Mapping[str, str]) -> None:
    """Store back-translations ({target: source}) requested on the page."""
    sources = {str(row.get("target")): str(row.get("source")) for row in read_rows(workspace / SOURCES_FILE)} | dict(translations)
    rows: Iterator[dict[str, str]] = ({"target": target, "source": source} for target, source in sources.items())
    write_jsonl(workspace / SOURCES_FILE, rows, "the back-translations")


def with_page_of(phrases: Phrases, look: PhraseView, at: int) -> PhraseView:
    """The view with the table page that contains phrase `at`; unchanged if the filters hide it."""
    positions = (phrases.select(look) == at).nonzero()[0]
    return look.but(start=int(positions[0]) // PAGE * PAGE) if len(positions) else look
