"""The commands `tailormt corpus …`. This module is imported only when one of them runs."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from engine.core.options import from_flags
from engine.core.text_table import table
from engine.corpora import Corpus, Decisions, SampleFiles, import_to
from engine.corpora.bundled import bundled_samples, named_files
from engine.corpora.types import CorpusOptions


def corpus_import(args: argparse.Namespace) -> tuple[Any, str]:
    from engine.corpora.leakage import find_leaks, read_test

    args.progress.begin("Reading samples")
    files = [Path(path) for path in named_files(args.samples, args.settings.assets_dir)]
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        workspace = Path(args.workspace or folder)
        report = import_to(
            workspace, SampleFiles(files, args.target, args.source), options=from_flags(CorpusOptions, args),
            decisions=Decisions.load(workspace), progress=args.progress,
        )  # fmt: skip
        leaks = []
        if args.test_files:
            args.progress.begin("Comparing with the test files")
            paths = [Path(path) for path in args.test_files]
            tests = [(path.name, sentence) for path in paths for sentence in read_test(path, args.target, args.source)]
            leaks = list(find_leaks(Corpus.load(workspace).segments, tests, args.progress))
    rows = [[f.name, f.encoding, f.lines, f.kept, sum(f.skipped.values())] for f in report.files]
    skipped = [f"{count} skipped: {reason}" for reason, count in report.skipped.items()]
    noticed = [f"{count} imported with a warning: {reason}" for reason, count in report.noticed.items()]
    domains = [f"{count} sentences of the domain {label or '(none)'}" for label, count in report.domains.items()]
    results = [f"Leak: {row['file']}, line {row['line']}: {row['test']}" for row in leaks]
    if args.test_files:
        results.append(f"{len(leaks)} sentences of the samples stand in the test files.")
    head = table(["file", "encoding", "lines", "kept", "skipped"], rows)
    text = "\n".join([head, *skipped, *noticed, *domains, *report.all_warnings, *results])
    return report.to_mapping() | ({"leaks": leaks} if args.test_files else {}), text


def corpus_samples(args: argparse.Namespace) -> tuple[Any, str]:
    result = bundled_samples(args.settings.assets_dir)
    rows = [
        [sample.name, sample.kind, "-".join(filter(None, (sample.source, sample.target))), sample.lines, sample.card.license_name,
         sample.files[0].parent]
        for sample in result
    ]  # fmt: skip
    text = table(["name", "kind", "language", "lines", "licence", "folder"], rows)
    return [sample.to_mapping() for sample in result], f"{text}\n\nUse one with --samples sample:NAME."
