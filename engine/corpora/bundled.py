"""The sample corpora bundled with the program: one folder per corpus, with a card and its files.

    assets/samples/it-help-en/README.md     the card: title, languages, licence, and the keys below
    assets/samples/it-help-en/it-help.txt   the sentences

`sample:it-help-en` denotes the corpus wherever sample files are specified. The card has these keys in addition to the Hub's:
`kind` (style, domain, bilingual, dirty, general), `target_language`, `source_language` (bilingual corpora), `goes_with`
(corpora that form one project together with this one).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.core.model_card import CARD_FILE, ModelCard, read_card_file
from engine.corpora import READERS
from engine.corpora.formats.columns import looks_like_header
from engine.errors import CorpusError
from engine.messages import Message

PREFIX = "sample:"


@dataclass(frozen=True)
class SampleCorpus:
    """A bundled corpus. `lines` counts the lines of its files without blank lines and headers; `goes_with` names other corpora."""

    name: str
    card: ModelCard
    files: tuple[Path, ...]
    lines: int
    kind: str
    target: str
    source: str = ""
    goes_with: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.card.title

    def to_mapping(self) -> dict[str, object]:
        """The entry in the output of `tailormt corpus samples --json`."""
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "languages": [code for code in (self.source, self.target) if code],
            "lines": self.lines,
            "license": self.card.license,
            "restricted": self.card.restricted,
            "files": [str(path) for path in self.files],
            "goes_with": list(self.goes_with),
        }


def bundled_samples(assets: Path) -> list[SampleCorpus]:
    """The corpora in `assets`/samples, sorted by kind and name; folders without a card or without files are ignored."""
    root = assets / "samples"
    results = [corpus for folder in sorted(root.glob("*/")) if (corpus := _corpus(folder)) is not None]
    kinds = ("style", "domain", "bilingual", "dirty", "general")
    return sorted(results, key=lambda corpus: (kinds.index(corpus.kind) if corpus.kind in kinds else len(kinds), corpus.name))


def _corpus(folder: Path) -> SampleCorpus | None:
    endings = {ending for reader in READERS.values() for ending in reader.endings}
    files = tuple(sorted(path for path in folder.iterdir() if path.suffix.lower() in endings and path.is_file()))
    if not files or not (folder / CARD_FILE).is_file():
        return None
    card = read_card_file(folder)
    with_ = card.metadata.get("goes_with", [])
    return SampleCorpus(
        name=folder.name,
        card=card,
        files=files,
        lines=sum(_lines(path) for path in files),
        kind=str(card.metadata.get("kind", "style")),
        target=str(card.metadata.get("target_language") or next(iter(card.languages), "")),
        source=str(card.metadata.get("source_language", "")),
        goes_with=tuple(map(str, with_)) if isinstance(with_, list) else (),
    )


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        lines = [line for line in file if line.strip()]
    cells = lines[0].decode("utf-8-sig", errors="replace").strip().replace("\t", ",").split(",") if lines else []
    return len(lines) - (len(cells) > 1 and looks_like_header(cells))


def named_files(samples: Iterable[str], assets: Path) -> list[str]:
    """The samples with every `sample:NAME` replaced by the files of that corpus. Raises CorpusError on an unknown name."""
    files: list[str] = []
    for sample in samples:
        if not sample.startswith(PREFIX):
            files.append(sample)
            continue
        name = sample.removeprefix(PREFIX)
        corpora = {corpus.name: corpus for corpus in bundled_samples(assets)}
        if name not in corpora:
            near = difflib.get_close_matches(name, corpora, n=1)
            hint = (
                Message("Did you mean {name}?", name=f"{PREFIX}{near[0]}")
                if near
                else Message("Available: {names}.", names=", ".join(corpora) or "none")
            )
            raise CorpusError("No sample corpus is called {name}. {hint} See `tailormt corpus samples`.", name=name, hint=hint)
        files += map(str, corpora[name].files)
    return files
