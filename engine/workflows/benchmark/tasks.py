"""The tasks of the benches: their samples, their test pairs, and the general text that shows what was forgotten."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.core.settings import load_settings
from engine.core.step_cache import content_hash, digest_files
from engine.errors import InputError, OptionError

WEIGHTS = (".safetensors", ".bin")


@dataclass(frozen=True)
class BenchmarkTask:
    """Paths below the data folder. A pair file has two columns: the first language, then the second."""

    title: str
    source: str
    target: str
    samples: str  # sentences of the target language, or pairs
    test: str  # pairs, or two files with {source} and {target} in the name
    general: str  # pairs of general text
    first: str  # language of the pair files' first column
    dev: str  # held-out sentences of the target language, or pairs


STYLE = {"test": "mtsc/test.{task}.{language}", "general": "heldout/ntrex.en-zh.tsv", "first": "en"}
GERMAN = {"general": "heldout/ntrex.de-en.tsv", "first": "de"}
TASKS = {
    "luxun": BenchmarkTask("Lu Xun", "en", "zh", "mtsc/train.luxun.random.zh", **STYLE, dev="mtsc/dev.luxun.random.zh"),
    "shake": BenchmarkTask("Shakespeare", "zh", "en", "mtsc/train.shake.all.en", **STYLE, dev="mtsc/dev.shake.all.en"),
    **{
        name: BenchmarkTask(title, "de", "en", f"domains/de-en/{name}.train.tsv.gz", f"domains/de-en/{name}.test.tsv", **GERMAN,
                   dev=f"domains/de-en/{name}.valid.tsv")
        for name, title in (("it", "IT"), ("medical", "Medical"), ("law", "Law"), ("koran", "Koran"))
    },
    "it_python": BenchmarkTask("Python documentation", "en", "zh", "domains/en-zh/it_python.train.tsv.gz",
                      "domains/en-zh/it_python.test.tsv", "heldout/ntrex.en-zh.tsv", "en",
                      "domains/en-zh/it_python.valid.tsv"),
    "news": BenchmarkTask("News", "de", "en", "parallel/de-en/news.tsv.gz", "heldout/ntrex.de-en.tsv", **GERMAN,
                 dev="heldout/ntrex.de-en.tsv"),
}  # fmt: skip


@lru_cache
def base_digest(base: str, source: str, target: str) -> str:
    """A digest of the weights of the named or default base: rows of another base are made again.

    Raises MissingError if there is none.
    """
    from engine.base.registry import BaseRegistry

    registry = BaseRegistry(load_settings())
    folder = registry.find(base) if base else registry.default(source, target)
    return content_hash(*digest_files(str(file) for file in sorted(folder.iterdir()) if file.suffix in WEIGHTS))


def load_task(
    name: str, data: Path, folder: Path, *, sentences: int, lines: int, seed: int
) -> tuple[BenchmarkTask, dict[str, Path]]:
    """Write a task's texts to `folder`; returns the task and the paths by name.

    "samples" is samples.txt (`sentences` random target sentences; 0: all). If they have sources, "pairs" is samples.tsv (sources
    and the same sentences). "test" and "general" are each a file of sources and one of references (the first `lines`; 0: all).
    Raises OptionError on an unknown task, InputError if the data is missing.
    """
    if name not in TASKS:
        raise OptionError(f"There is no task {name}. Known: {', '.join(TASKS)}.")
    task = TASKS[name]
    folder.mkdir(parents=True, exist_ok=True)
    pairs = _sentences(task, data / task.samples)
    random.Random(seed).shuffle(pairs)
    pairs = pairs[: sentences or None]
    result = {"samples": _write(folder / "samples.txt", [text for text, _ in pairs])}
    if all(source for _, source in pairs):
        result["pairs"] = _write(folder / "samples.tsv", [f"{source}\t{text}" for text, source in pairs])
    for kind, path in (("test", task.test), ("general", task.general)):
        sources, references = _both_sides(name, task, data, path)
        result[f"{kind}.source"] = _write(folder / f"{kind}.{task.source}.txt", sources[: lines or None])
        result[f"{kind}.target"] = _write(folder / f"{kind}.{task.target}.txt", references[: lines or None])
    return task, result


def dev_sentences(name: str, data: Path, *, column: int = 0) -> list[str]:
    """A task's held-out target sentences, or with `column` 1 their sources. Raises InputError if they are missing."""
    task = TASKS[name]
    return [pair[column] for pair in _sentences(task, data / task.dev)]


def _read(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
    except OSError:
        raise InputError(f"{path} is not there. Give the folder of the data with --data.") from None
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8").removesuffix("\n").split("\n")


def _pairs(task: BenchmarkTask, path: Path) -> tuple[list[str], list[str]]:
    rows = [line.rstrip("\r").split("\t") for line in _read(path)]
    position = 0 if task.source == task.first else 1
    return [row[position] for row in rows if len(row) == 2], [row[1 - position] for row in rows if len(row) == 2]


def _sentences(task: BenchmarkTask, path: Path) -> list[tuple[str, str]]:
    """(sentence of the target language, its source or an empty string), each sentence once."""
    sources, texts = _pairs(task, path) if ".tsv" in path.name else ([], _read(path))
    result: dict[str, str] = {}
    for index, text in enumerate(texts):
        if text.strip():
            result.setdefault(text.strip(), sources[index].strip() if sources else "")
    return list(result.items())


def _both_sides(name: str, task: BenchmarkTask, data: Path, path: str) -> tuple[list[str], list[str]]:
    if "{language}" not in path:
        return _pairs(task, data / path)
    sides = [_read(data / path.format(task=name, language=language)) for language in (task.source, task.target)]
    return sides[0], sides[1]


def _write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
