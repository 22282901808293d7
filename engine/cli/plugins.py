"""The commands `tailormt plugin …`: list, verify, import, export and name plugins, blend them, replace their samples."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.commands import Shown, base_path, load_base, store_of
from engine.core.atomic_files import atomic_write, check_writable
from engine.core.options import from_flags, named_values
from engine.core.text_table import table
from engine.corpora.bundled import named_files
from engine.errors import BundleError, InputError, OptionError

if TYPE_CHECKING:
    from engine.plugins.library import Library


def library(args: argparse.Namespace) -> Library:
    from engine.plugins.library import Library

    return Library(store_of(args), args.settings)


def plugin_list(args: argparse.Namespace) -> Shown:
    store = library(args).store
    projects = [store.projects.get(args.project)] if args.project is not None else store.projects.list()
    rows: list[dict[str, Any]] = []
    for project in projects:
        tags, default = store.tags.of(project.id), store.defaults.get(project.id)
        rows += [
            {
                "id": row.id, "project": project.id, "name": row.name, "method": row.method, "path": row.path,
                "metrics": row.metrics, "tags": tags.get(row.id, []), "default": default is not None and row.id == default.id,
            }
            for row in store.plugins.list(project.id)
        ]  # fmt: skip
    rows.sort(key=lambda row: -row["id"])
    cells = [
        [r["id"], r["project"], r["name"], r["method"], "yes" if r["default"] else "", ", ".join(r["tags"]), r["path"]]
        for r in rows
    ]
    text = table(["id", "project", "name", "method", "default", "tags", "bundle"], cells)
    return rows, text if rows else "There are no plugins yet. Make one with `tailormt customize` or in the studio."


def plugin_verify(args: argparse.Namespace) -> Shown:
    from engine.base import BaseModel
    from engine.plugins.bundle import read_bundle_card
    from engine.plugins.import_checks import check_bundle

    more: dict[str, Any] = {}
    if args.project is not None:
        project = library(args).store.projects.get(args.project)
        more = {
            "direction": (project.source, project.target),
            "base": lambda: BaseModel.load(project.base, project.source, project.target, settings=args.settings),
            "cache": args.settings.home_dir / "unpacked",
        }
    checks = list(check_bundle(args.bundle, **more))
    if not checks[-1].ok:
        raise BundleError(checks[-1].sentence)
    card = read_bundle_card(args.bundle)
    created = card["provenance"].get("created", "")
    text = (
        f"{args.bundle} is whole: {card['name']}, {card['method']}, {card['source']} to {card['target']}, made {created} for the "
        f"base {card['base_model_name_or_path']}; files {', '.join(card['files'])}."
    )
    steps = table(["check", "found"], [[check.title, check.sentence] for check in checks])
    return {**card, "checks": [check.to_mapping() for check in checks]}, f"{steps}\n\n{text}"


def plugin_export(args: argparse.Namespace) -> Shown:
    from engine.plugins.bundle import read_bundle_card

    plugin_library, output = library(args), Path(args.output)
    plugin_library.export(plugin_library.store.plugins.get(args.id), output, with_phrases=args.with_phrases)
    files = read_bundle_card(output)["files"]
    return {"output": args.output, "files": files}, f"Wrote {args.output}."


def plugin_import(args: argparse.Namespace) -> Shown:
    from engine.base import BaseModel

    plugin_library = library(args)
    project = plugin_library.store.projects.get(args.project)

    def base() -> BaseModel:
        return BaseModel.load(project.base, project.source, project.target, settings=args.settings)

    row = plugin_library.import_bundle(project, args.bundle, base)
    return {"id": row.id, "path": row.path}, f"Imported {row.name} as plugin {row.id} of {project.name}."


def plugin_rename(args: argparse.Namespace) -> Shown:
    plugin_library = library(args)
    row = plugin_library.store.plugins.get(args.id)
    plugin_library.rename(row.project_id, row.name, args.name)
    name = plugin_library.store.plugins.get(args.id).name
    return {"id": args.id, "name": name}, f"{row.name} is now {name}."


def plugin_tag(args: argparse.Namespace) -> Shown:
    plugin_library = library(args)
    row = plugin_library.store.plugins.get(args.id)
    tags = plugin_library.tag(row.project_id, row.name, args.tags)
    return {"id": args.id, "tags": tags}, f"{row.name}: {', '.join(tags) or 'no tags'}."


def plugin_delete(args: argparse.Namespace) -> Shown:
    plugin_library = library(args)
    row = plugin_library.store.plugins.get(args.id)
    plugin_library.delete(row)
    return {"id": args.id}, f"Plugin {args.id}, {row.name}, is deleted."


def plugin_default(args: argparse.Namespace) -> Shown:
    store = library(args).store
    project = store.projects.get(args.project)
    if args.id == "base":
        store.defaults.set(project.id, None)
    elif args.id is not None:
        try:
            store.defaults.set(project.id, int(args.id))
        except ValueError:
            raise OptionError(f"{args.id} is no plugin's number. Give one of `tailormt plugin list`, or base.") from None
    row = store.defaults.get(project.id)
    name = f"plugin {row.id}, {row.name}" if row else "the base alone"
    return {"project": project.id, "plugin": row.id if row else None}, f"{project.name} uses {name} where none is named."


def plugin_blend(args: argparse.Namespace) -> Shown:
    from engine.plugins.blend import make_blend
    from engine.plugins.bundle import read_bundle_card

    parts = [part_of(text) for text in args.parts]
    output = Path(args.output)
    check_writable(output, "the blend")
    first = read_bundle_card(parts[0].path)
    base = load_base(args, first)
    if base.fingerprint() != first["base_fingerprint"]:
        raise InputError(
            f"{parts[0].path} was made for the base {first['base_model_name_or_path']}, not for {base.name}. Name its base "
            "with --base."
        )
    card = make_blend(output, args.name or output.stem, parts, base=base, progress=args.progress)
    return card, f"Wrote {args.output}: {card['provenance']['made_of']}."


def part_of(text: str) -> Any:
    """Parse a part of a blend, such as `style.zip=0.7`. Raises OptionError if the weight is not a number."""
    from engine.plugins.blend import Part

    path, mark, weight = text.rpartition("=")
    if not mark or Path(text).exists():
        return Part(Path(text), 1.0)
    try:
        return Part(Path(path), float(weight))
    except ValueError:
        raise OptionError(f"{text}: the weight {weight!r} is no number. Write it as PLUGIN.zip=0.7.") from None


def plugin_swap(args: argparse.Namespace) -> Shown:
    from engine.methods import get_method
    from engine.plugins.bundle import read_bundle_card
    from engine.plugins.replace_samples import check_swap, swap_bundle

    card = read_bundle_card(args.bundle)
    check_swap(get_method(card["method"]))
    check_writable(Path(args.output), "the plugin")
    done = swap_bundle(
        Path(args.bundle),
        Path(args.output),
        named_files(args.samples, args.settings.assets_dir),
        base=base_path(args, card),
        backward=args.backward,
        download=args.download,
        settings=args.settings,
        progress=args.progress,
    )
    return done, f"Wrote {done['output']}: {done['sentences']:,} sentences to look up, the weights as they were."


def plugin_ablate(args: argparse.Namespace) -> Shown:
    from engine.base.decoding_options import Decoding
    from engine.corpora.formats.text_lines import read_lines
    from engine.methods.ablation import KINDS, kinds_of
    from engine.phrases import PhraseOptions
    from engine.plugins.ablate import Ablation, ablate_bundle, check_ablate, check_lines, table_rows
    from engine.plugins.bundle import read_bundle_card

    card = read_bundle_card(args.bundle)
    check_ablate(card)
    request = Ablation(
        read_lines(args.source_file, card["source"]),
        read_lines(args.reference, card["target"]),
        kinds_of(args.against) if args.against else KINDS,
        [Path(name) for name in named_files(args.foreign, args.settings.assets_dir)],
        from_flags(Decoding, args, card["decoding"]),
        PhraseOptions.from_mapping(named_values(args.phrase_option, "--phrase-option")),
        args.seed,
    )
    check_lines(request)
    base = load_base(args, card)
    report = ablate_bundle(
        Path(args.bundle), request, base=base, backward=args.backward, settings=args.settings, progress=args.progress
    )
    if args.output:
        write_translations(Path(args.output), report)
    text = table(["memory", "what it holds", "BLEU", "chrF", "NLL", "p", "changed"], table_rows(report))
    note = (
        f"{report['lines']} lines; NLL in nats per target token of the reference; p of BLEU against the memory itself, by paired "
        "bootstrap; changed: translations that differ from those."
    )
    return report, f"{text}\n\n{note}"


def write_translations(folder: Path, report: dict[str, Any]) -> None:
    """Write one file per memory, with one translation per line. Raises StorageError."""
    for variant in [{"memory": "base", **report["base"]}, *report["variants"]]:
        if variant["translations"] is not None:
            with atomic_write(folder / f"{variant['memory']}.txt", "the translations") as temporary:
                lines = (" ".join(line.split()) for line in variant["translations"])
                temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
