"""What tests of a running studio begin with, made once in a process of tests: a project's samples and short assets."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from tests.bases import ROOT

ASSETS = ROOT / "assets"
SENTENCES = 200  # of the sample


@functools.cache
def read_samples(sample: Path) -> tuple[Path, str, int]:
    """A folder with what reading a Chinese sample leaves in a project's, the parser of its phrases, and how many these are."""
    from engine.corpora import import_corpus
    from engine.phrases import Drawing, PhraseOptions, extract_phrases
    from engine.phrases.tree_store import TREES_FILE, writing_trees

    folder = run_folder() / "read" / sample.stem
    (folder / "samples").mkdir(parents=True)
    file = folder / "samples" / sample.name
    lines = sample.read_text(encoding="utf-8").splitlines()[:SENTENCES]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = import_corpus([file], "zh")
    corpus.save(folder)
    sentences = [segment.text for segment in corpus.segments]
    with writing_trees(folder / TREES_FILE) as trees:
        phrases = extract_phrases(sentences, "zh", PhraseOptions(parser="statistical"), drawing=Drawing(trees))
    phrases.save(folder / "phrases.jsonl")
    return folder, phrases.parser, len(phrases)


@functools.cache
def short_assets() -> Path:
    """The assets with a sixth of their general text: each base translates all of it once for each home."""
    folder = run_folder() / "assets"
    (folder / "samples").mkdir(parents=True)
    for path in (*ASSETS.glob("models"), *ASSETS.glob("parsers"), *ASSETS.glob("samples/*")):
        link = folder / path.relative_to(ASSETS)
        if not path.name.startswith("general-"):
            link.symlink_to(path)
            continue
        shutil.copytree(path, link)
        file = link / f"{path.name}.txt"
        lines = file.read_text(encoding="utf-8").splitlines()[::6]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def run_folder() -> Path:
    """Of this process of tests, removed at its end."""
    return Path(os.environ["TAILORMT_HOME"]).parent
