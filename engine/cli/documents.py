"""`tailormt translate` for documents: flags, and the resumable run."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.atomic_files import check_writable
from engine.core.options import from_flags
from engine.core.text_table import table
from engine.corpora.formats.documents.formats import is_document, open_document
from engine.corpora.formats.documents.model import Context, Document, DocumentOptions
from engine.corpora.terminology import Term
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.base.decoding_options import Decoding
    from engine.plugins import Plugin, PluginStack
    from engine.workflows.documents import DocumentReport

SHOWN = 12  # segments to check that are printed; --json contains all


def document_of(args: argparse.Namespace) -> Document | None:
    """Open the command's document; None if the input is lines of text. Raises InputError, DocumentError, StorageError."""
    if not (args.document or is_document(args.input)):
        return None
    if args.input == "-":
        raise InputError("A document cannot come from standard input: give its file.")
    path = Path(args.input)
    if args.output == "-":
        args.output = str(path.with_suffix(f".{args.target}{path.suffix}"))
    if Path(args.output).resolve() == path.resolve():
        raise InputError(f"{args.output} is the document itself. Give another name with -o.")
    if Path(args.output).suffix.lower() != path.suffix.lower():
        raise InputError(f"A document keeps its format: give -o a name that ends in {path.suffix}.")
    check_writable(Path(args.output), "the translation")
    return open_document(path, _context(args))


def _context(args: argparse.Namespace) -> Context:
    return Context(Path(args.input).name, args.source, args.target, from_flags(DocumentOptions, args))


def sentences(document: Document, source: str) -> list[str]:
    """The sentences of a document as given to a translator, in order."""
    from engine.serving.units.mask import mask, prepare

    results = [prepare(unit, source) for unit in document.units]
    return [mask(prepared.text, *position).text for prepared in results for position in prepared.sentences]


def translate_file(
    args: argparse.Namespace, base: BaseModel, plugin: Plugin | PluginStack | None, decoding: Decoding, terms: Sequence[Term] = ()
) -> tuple[Any, str]:
    """Translate the document; after Ctrl-C, the same command resumes from the last finished sentences."""
    from engine.serving.units.translate import BaseTranslator
    from engine.workflows.documents import translate_document

    key = json.dumps([str(Path(args.input).resolve()), str(Path(args.output).resolve())])
    partial = args.settings.home_dir / "work" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsonl"
    report = translate_document(
        Path(args.input),
        Path(args.output),
        BaseTranslator(base, plugin, args.strength, decoding, terms=terms),
        options=_context(args).options,
        progress=args.progress,
        partial=partial,
    )
    return {"output": args.output, **report.to_mapping()}, report_text(args.output, report)


def report_text(output: str, report: DocumentReport) -> str:
    """The report as text."""
    lines = [f"Wrote {output}: {report.title}, {report.units:,} texts of {report.characters:,} characters translated."]
    lines += [f"Left unchanged: {count:,} {reason}." for reason, count in sorted(report.kept.items())]
    if report.doubtful:
        rows = [[doubt["place"], doubt["why"], doubt["translation"]] for doubt in report.doubts[:SHOWN]]
        lines += ["", f"{report.doubtful:,} to check:", table(["where", "why", "translation"], rows)]
    return "\n".join(lines)
