"""The commands that use plugins: translate lines or a document, and compare with the base."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.cli import documents
from engine.cli.commands import Shown, base_path, load_base
from engine.core.atomic_files import atomic_write, check_apart, check_writable
from engine.core.options import describe, from_flags
from engine.core.text_table import table
from engine.corpora.formats.text_lines import read_lines
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.plugins import Plugin, PluginStack


def load_plugin(args: argparse.Namespace, base: BaseModel) -> Plugin | PluginStack | None:
    """Load the plugin of --plugin; several are stacked in the given order."""
    from engine.plugins import Plugin, PluginStack

    loaded = [Plugin.load(path, base, cache=args.settings.home_dir / "unpacked") for path in args.plugin or []]
    return PluginStack(loaded) if len(loaded) > 1 else loaded[0] if loaded else None


def decoding_of(args: argparse.Namespace, base: BaseModel, plugin: Plugin | PluginStack | None) -> Decoding:
    """The decoding settings: the base's, overridden by the plugin's tuned ones, overridden by flags."""
    tuned = plugin.card.get("decoding", {}) if plugin and args.strength else {}
    return from_flags(Decoding, args, base.decoding(tuned).to_mapping())


def translate(args: argparse.Namespace) -> Shown:
    from engine.corpora.terminology import read_terms, usage
    from engine.decoding.translate import translate as translate_lines

    document = documents.document_of(args)
    lines = documents.sentences(document, args.source) if document else read_lines(args.input, args.source)
    if args.strength != 1.0 and not args.plugin:
        raise InputError("--strength needs --plugin: it is how strongly the plugin acts.")
    if args.output != "-":
        check_apart(Path(args.output), [Path(file) for file in (args.input, args.terms, *(args.plugin or [])) if file])
        check_writable(Path(args.output), "the translation")
    args.progress.resumes = bool(document)
    if not document and (quick := by_studio(args, lines)) is not None:
        return write_output(args, quick, {})
    base = load_base(args)
    plugin = load_plugin(args, base)
    if args.dry_run:
        return preview(base, plugin, lines)
    decoding = decoding_of(args, base, plugin)
    terms = read_terms(Path(args.terms), args.target, args.source) if args.terms else []
    if document:
        return documents.translate_file(args, base, plugin, decoding, terms)
    args.progress.begin("Translating")
    results = translate_lines(base, lines, plugin, strength=args.strength, decoding=decoding, progress=args.progress, terms=terms)
    args.progress.close()
    used, required = usage(terms, lines, results)
    if terms and not args.quiet:
        print(f"Terminology: {used:,} of {required:,} required terms used.", file=sys.stderr)
    return write_output(args, results, {"terms": {"used": used, "called_for": required}} if terms else {})


def by_studio(args: argparse.Namespace, lines: Sequence[str]) -> list[str] | None:
    """Translations by a running studio, which has the base loaded; None if none is running or it cannot make them."""
    if args.terms or args.dry_run or args.download or len(args.plugin or []) > 1:
        return None
    from engine.base.registry import BaseRegistry
    from engine.serving.batcher import TranslationSpec
    from engine.serving.resident import ask

    folder = BaseRegistry(args.settings).find(base_path(args)).absolute()
    plugin = str(Path(args.plugin[0]).absolute()) if args.plugin else ""
    decoding = {item.name: getattr(args, item.name) for item in describe(Decoding) if hasattr(args, item.name)}
    work = TranslationSpec.of(str(folder), args.source, args.target, plugin, args.strength, decoding)
    return ask(args.settings, work, lines, args.progress)


def write_output(args: argparse.Namespace, results: Sequence[str], more: Mapping[str, Any]) -> Shown:
    """Write the output file, if any; returns the report and the text to print."""
    from engine.core.flagged import flags_of

    warn_of_flags(args, results)
    report = {"flags": flags_of(results), **more}
    text = "\n".join(" ".join(line.split()) for line in results)
    if args.output != "-":
        with atomic_write(Path(args.output), "the translation") as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        return {"output": args.output, "lines": len(results), **report}, ""
    return {"translations": results, **report}, text


def warn_of_flags(args: argparse.Namespace, translations: Sequence[str]) -> None:
    """Print the number of flagged translations on stderr."""
    from engine.core.flagged import flags_of

    flags = [row["flag"] for row in flags_of(translations)]
    if flags and not args.quiet:
        again = sum(flag.endswith("repaired") for flag in flags)
        print(
            f"{len(flags):,} of {len(translations):,} translations repeated themselves or ran on; {again:,} were repaired by a "
            "second search. --json lists them.",
            file=sys.stderr,
        )


def compare(args: argparse.Namespace) -> Shown:
    from engine.core.flagged import flags_of
    from engine.decoding.translate import translate as translate_lines
    from engine.plugins.plugin import check_strength

    check_strength(args.strength)
    args.progress.resumes = False
    lines = read_lines(args.input, args.source)
    base = load_base(args)
    plugin = load_plugin(args, base)
    decoding = decoding_of(args, base, plugin)
    args.progress.begin("Translating with the base", 0, 2)
    vanilla = translate_lines(base, lines, decoding=decoding, progress=args.progress)
    args.progress.begin("Translating with the plugin", 1, 2)
    customized = translate_lines(base, lines, plugin, strength=args.strength, decoding=decoding, progress=args.progress)
    args.progress.close()
    warn_of_flags(args, [*vanilla, *customized])
    rows: list[dict[str, Any]] = [
        {"source": a, "vanilla": b, "customized": c} for a, b, c in zip(lines, vanilla, customized, strict=True)
    ]
    flags = {name: flags_of(translations) for name, translations in (("vanilla", vanilla), ("customized", customized))}
    for name, result in flags.items():
        for flagged in result:
            rows[flagged["line"] - 1].setdefault("flags", {})[name] = flagged["flag"]
    changed = sum(row["vanilla"] != row["customized"] for row in rows)
    text = table(
        ["source", "vanilla", plugin.name if plugin else "plugin"],
        [[row["source"], row["vanilla"], row["customized"]] for row in rows],
    )
    return rows, f"{text}\n\n{changed} of {len(rows)} sentences differ."


def preview(base: BaseModel, plugin: Plugin | PluginStack | None, texts: Sequence[str]) -> tuple[list[Any], str]:
    """A dry run: the requests to services for these texts, as a list and as JSON lines; empty if no plugin calls one."""
    from engine.plugins import PluginStack

    plugins = plugin.plugins if isinstance(plugin, PluginStack) else [plugin] if plugin else []
    selected = [" ".join(text.split()) for text in texts if text.strip()]
    rows = [row for member in plugins for row in member.method.preview(base, member.module, selected)]
    if not rows:
        return rows, "Nothing would be sent: no plugin in use calls a service."
    return rows, "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
