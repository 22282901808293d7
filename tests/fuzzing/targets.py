"""Everything that reads what a stranger may have written, as a function of bytes; a TailorError is an answer, all else a crash."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from engine.errors import TailorError
from tests.fuzzing.seeds import ROOT, seeds

__all__ = ["TARGETS", "Target", "emptied", "outcome", "warm"]

CORPORA = ("txt", "csv", "tsv", "jsonl", "tmx", "xliff", "po", "docx", "odt", "srt", "pdf")
ENDING = {"xliff": ".xlf"}
PAPERS = {
    "docx": ".docx",
    "pptx": ".pptx",
    "xlsx": ".xlsx",
    "odt": ".odt",
    "xliff": ".xlf",
    "po": ".po",
    "srt": ".srt",
    "vtt": ".vtt",
    "html": ".html",
    "markdown": ".md",
    "txt": ".txt",
}


@dataclass(frozen=True)
class Target:
    """`run` reads the bytes, below the folder alone, and says in a word what came out; `heavy`: loads torch."""

    name: str
    run: Callable[[bytes, Path], object]
    kind: str  # of mutation
    seeds: Sequence[bytes] = field(repr=False)
    heavy: bool = False


def outcome(target: Target, data: bytes, folder: Path) -> str:
    """What came out, as few words that many inputs share; anything but a TailorError is raised."""
    try:
        return f"{target.run(data, folder)}"
    except TailorError as error:
        words = str(error)
        assert words.strip(), "an error says what is wrong"
        assert "Traceback" not in words, "an error is a sentence"
        return type(error).__name__ + "".join(" " if not char.isalpha() else char for char in words.replace(str(folder), ""))[:60]


def _corpus(form: str, data: bytes, folder: Path) -> object:
    from engine.corpora.formats.read import open_samples
    from engine.corpora.formats.records import Record, Request

    file = folder / f"a{ENDING.get(form, f'.{form}')}"
    file.write_bytes(data)
    request = Request(*(("zh", "en") if len(data) % 2 else ("en", None)))
    result = open_samples(file, request)
    selected, reasons = 0, set()
    for item in result.items:
        if isinstance(item, Record):
            selected += 1
        else:
            reasons.add(item.reason)
    assert result.lines() >= 0
    assert result.position() >= 0
    return f"{min(selected, 3)} {sorted(reasons)} {len(result.notes)} {len(result.warnings)} {bool(result.hint())}"


def _import(form: str, data: bytes, folder: Path) -> object:
    """The whole way into a corpus and back from its folder."""
    from engine.corpora import Corpus, CorpusOptions, SampleFiles, import_to

    file = folder / f"a{ENDING.get(form, f'.{form}')}"
    file.write_bytes(data)
    options = CorpusOptions(check_language=False, split_sentences=len(data) % 3 == 0, min_chars=1)
    report = import_to(folder / "w", SampleFiles([file], "zh", source_language="en" if len(data) % 2 else None), options=options)
    corpus = Corpus.load(folder / "w")
    assert len(corpus) == report.kept
    return f"{min(len(corpus), 3)} {sorted(report.skipped)}"


def _paper(form: str, data: bytes, folder: Path) -> object:
    from engine.corpora.formats.documents.formats import open_document
    from engine.corpora.formats.documents.model import Context
    from engine.workflows.documents import translate_document
    from tests.translators import identity

    file, output = folder / f"a{PAPERS[form]}", folder / f"b{PAPERS[form]}"
    file.write_bytes(data)
    report = translate_document(file, output, identity())
    again = open_document(output, Context(output.name, "en", "de"))
    return f"{report.title} {min(report.units, 3)} {sorted(report.kept)} {report.doubtful > 0} {min(3, len(again.units))}"


def _bundle(data: bytes, folder: Path) -> object:
    from engine.plugins import read_bundle_card, unpack_bundle, verify_bundle
    from engine.plugins.bundle import read_bundle_text
    from engine.plugins.library import needs_texts

    file = folder / "a.zip"
    file.write_bytes(data)
    card = read_bundle_card(file)
    text = read_bundle_text(file)
    needs_texts(file)
    verify_bundle(file)
    path = unpack_bundle(file, folder / "cache")
    assert path.is_relative_to(folder)
    return f"{card['format_version']} {len(card['files'])} {len(text) > 10}"


@cache
def _base() -> Any:
    import torch

    from engine.base import BaseModel

    torch.set_num_threads(1)
    return BaseModel.load(ROOT / "tests/golden/format-1/base", "en", "zh", device="cpu")


def _plugin(data: bytes, folder: Path) -> object:
    from engine.plugins import Plugin
    from engine.plugins.repack import repack

    file = folder / "a.zip"
    file.write_bytes(data)
    plugin = Plugin.load(file, _base(), cache=folder / "cache")
    repack(file, folder / "b.zip", with_phrases=False, name="x")
    return f"{plugin.method.name} {bool(plugin.knn)}"


def _backup(data: bytes, folder: Path) -> object:
    from engine.core.settings import Settings
    from engine.workflows.maintenance.restore import restore_backup

    file = folder / "a.zip"
    file.write_bytes(data)
    result = restore_backup(Settings(home=str(folder / "home")), file)
    return f"{min(result['files'], 5)} {result['rows']}"


def _card(data: bytes, folder: Path) -> object:
    from engine.core.model_card import read_card_file

    (folder / "README.md").write_bytes(data)
    card = read_card_file(folder)
    return f"{bool(card.title)} {card.restricted} {len(card.languages)} {bool(card.summary)} {len(card.metadata)}"


def _settings(data: bytes, folder: Path) -> object:
    from engine.core.settings import load_settings

    (folder / "settings.toml").write_bytes(data)
    from engine.core import settings

    settings._from_environment.cache_clear()
    result = load_settings({"TAILORMT_HOME": str(folder)})
    return f"{result.device == 'auto'} {result.server_paths_allowed} {bool(result.parser_dirs)}"


def _options(data: bytes, folder: Path) -> object:
    from engine.base.decoding_options import Decoding
    from engine.core.settings import Settings
    from engine.corpora.formats.documents.model import DocumentOptions
    from engine.corpora.types import CorpusOptions
    from engine.errors import OptionError
    from engine.phrases.options import PhraseOptions
    from engine.workflows.customize.request import CustomizeRequest, corpus_config, phrase_config, validate

    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(values, dict):
        return "no object"
    taken = []
    for kind in (CorpusOptions, PhraseOptions, Decoding, DocumentOptions, Settings, CustomizeRequest):
        try:
            options = kind.from_mapping(values)
        except OptionError:
            continue
        kind.from_mapping(json.loads(json.dumps(options.to_mapping())))
        taken.append(kind.__name__)
    text = data.decode("utf-8", "replace")
    arguments = {"base": "x", "source": "en", "target": "zh", "samples": ["a"], "corpus_options": text, "phrase_options": text}
    request = CustomizeRequest.of_job(arguments)
    for wish in (validate, corpus_config, phrase_config):
        try:
            wish(request)
        except TailorError:
            continue
    return taken


def _workspace(data: bytes, folder: Path) -> object:
    """The files of a workspace, as a crash or another program may leave them."""
    from engine.core.atomic_files import read_json
    from engine.core.step_cache import StepCache
    from engine.corpora import Corpus, Decisions
    from engine.memory.phrase_pairs import load_pairs
    from engine.phrases import PhraseSet
    from engine.phrases.exclusions import Exclusions

    good = seeds()["workspace"]
    files = ("corpus.jsonl", "import_report.json", "phrases.jsonl", "decisions.jsonl", "excluded_phrases.jsonl", "steps.json")
    for name, body in zip(files, good, strict=True):
        (folder / name).write_bytes(body)
    for name in files:
        (folder / name).write_bytes(data)
        if name in files[:2]:
            with contextlib.suppress(TailorError):
                Corpus.load(folder)
            (folder / name).write_bytes(good[files.index(name)])
    results = []
    for read in (lambda: PhraseSet.load(folder / "phrases.jsonl"), lambda: load_pairs(folder / "phrases.jsonl")):
        try:
            read()
            results.append("read")
        except TailorError:
            results.append("refused")
    left, out = Decisions.load(folder), Exclusions.load(folder)
    cached = StepCache(folder)
    cached.get("samples")
    cached.variant("phrases", "x")
    return f"{results} {bool(left)} {bool(out)} {len(read_json(folder / 'steps.json'))}"


def _targets() -> dict[str, Target]:
    good = seeds()
    results: list[Target] = []
    for form in CORPORA:
        kind = "zip" if form in ("docx", "odt") else "text"
        more = good["archive"] if kind == "zip" else []
        results.append(Target(f"corpus.{form}", partial(_corpus, form), kind, [*good[form], *more]))
        results.append(Target(f"import.{form}", partial(_import, form), kind, good[form]))
    for form in PAPERS:
        kind = "zip" if form in ("docx", "pptx", "xlsx", "odt") else "text"
        examples = good["srt" if form == "vtt" else form]
        results.append(Target(f"document.{form}", partial(_paper, form), kind, examples))
    results.append(Target("bundle", _bundle, "bundle", good["bundle"]))
    results.append(Target("plugin", _plugin, "bundle", good["bundle"], heavy=True))
    results.append(Target("backup", _backup, "zip", good["backup"], heavy=True))
    results.append(Target("card", _card, "text", good["card"]))
    results.append(Target("settings", _settings, "text", good["settings"]))
    results.append(Target("options", _options, "json", good["options"]))
    results.append(Target("workspace", _workspace, "json", good["workspace"]))
    from tests.fuzzing.routes import ROUTES

    return {target.name: target for target in (*results, ROUTES)}


def warm() -> None:
    """Load what readers load when first needed, which is not the time of the input that needs it first."""
    from engine.corpora.language import identify

    for expected in (("zh", "en"), ("en",)):
        identify(["The rain stopped and nobody came.", "他什么也不曾说。", "Regen und Wind.", "ветер"], *expected)


def emptied(folder: Path) -> Path:
    """The folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


TARGETS = _targets()
