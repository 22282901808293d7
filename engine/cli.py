"""The command line `tailormt`: flags made from the engine's settings, one function a command, errors as one sentence.

Nothing heavy is imported before a command runs, so that --help answers at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence

import engine
from engine.accounts.commands import add_account_commands, add_audit_flags
from engine.artefacts.commands import add_artefact_commands
from engine.base.commands import add_base_commands
from engine.base.train.commands import add_train_flags
from engine.benching.commands import add_methods_flags, add_reproduce_flags
from engine.client.commands import add_client_commands, add_token_commands
from engine.comparison.commands import add_evaluate_flags
from engine.corpora.types import CorpusOptions
from engine.decoding.knn.commands import add_knn_commands
from engine.decoding.options import Decoding
from engine.documents.commands import INPUT, add_document_flags
from engine.errors import TailorError
from engine.evaluation.commands import add_rating_commands
from engine.jobs.backends.commands import add_backend_flags, add_replica_commands
from engine.jobs.commands import add_job_commands
from engine.languages import canonical
from engine.methods.domain_mixing.commands import add_proportion_flags
from engine.options import add_flags, from_flags
from engine.parsers.commands import add_parser_commands
from engine.plugins.commands import add_plugin_commands
from engine.settings import Settings, load_settings
from engine.store.commands import add_store_commands
from engine.upkeep.commands import add_upkeep_commands

__all__ = ["main", "parser"]

SAMPLES = (
    "your sentences: txt, csv, tsv, jsonl, tmx, xliff, po, docx, odt, srt, pdf; sample:NAME for one that came along, see "
    "`tailormt corpus samples`"
)


def common(settings: bool = True) -> argparse.ArgumentParser:
    """Flags that every command has."""
    found = argparse.ArgumentParser(add_help=False)
    found.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    found.add_argument("--quiet", action="store_true", help="no progress on stderr")
    if settings:
        add_flags(found, Settings, only=("home", "device", "precision", "base_precision", "threads"))
    return found


def direction(target: argparse.ArgumentParser, required: bool = True) -> None:
    target.add_argument("--source", required=required, metavar="LANG", help="language translated from, as en or pt-BR")
    target.add_argument("--target", required=required, metavar="LANG", help="language translated to, as zh or zh-Hant")


def base(target: argparse.ArgumentParser) -> None:
    target.add_argument(
        "--base", default="", metavar="DIR", help="folder, short name or hub id of the base [one that knows the pair]"
    )
    direction(target)
    target.add_argument("--download", action="store_true", help="allow a base to be fetched from the hub")


def job(target: argparse.ArgumentParser, output: bool, workspace: bool) -> None:
    """Flags of the main job and of its steps."""
    base(target)
    target.add_argument("--samples", nargs="+", required=True, metavar="FILE", help=SAMPLES)
    target.add_argument(
        "--domains", nargs="+", default=(), metavar="LABEL", help="a domain label for each file [the files' names]"
    )
    target.add_argument(
        "--backward", default="", metavar="DIR", help="base of the other direction, where one is needed"
    )
    target.add_argument(
        "--method", default="memory_adapter", metavar="NAME", help="see `tailormt methods` [memory_adapter]"
    )
    target.add_argument(
        "--budget",
        default="balanced",
        choices=("quick", "balanced", "best"),
        help="how long to train: minutes, tens of minutes, hours [balanced]",
    )
    for kind, what in (
        ("method", "the method"), ("training", "training"), ("corpus", "reading the samples"),
        ("phrase", "phrase extraction"), ("knn", "kNN decoding"),
    ):  # fmt: skip
        target.add_argument(
            f"--{kind}-option", action="append", metavar="NAME=VALUE", help=f"a setting of {what}; repeatable"
        )
    target.add_argument("--workspace", required=workspace, metavar="DIR", help="folder for the steps' files; kept")
    if output:
        target.add_argument("-o", "--output", required=True, metavar="PLUGIN.zip", help="the bundle to write")
        target.add_argument("--name", default="", help="the plugin's name [the bundle's]")
        target.add_argument(
            "--knn", action="store_true", help="put a datastore for kNN decoding into the bundle as well"
        )
        target.add_argument(
            "--with-phrases", action=argparse.BooleanOptionalAction, default=True, help="phrases in the bundle"
        )


def using(
    target: argparse.ArgumentParser, plugin_required: bool, given: str = "a sentence a line; - reads standard input"
) -> None:
    """Flags of commands that translate."""
    base(target)
    target.add_argument(
        "--plugin", action="append", required=plugin_required, metavar="PLUGIN.zip", help="a plugin to use; repeatable"
    )
    target.add_argument(
        "--strength", type=float, default=1.0, metavar="S", help="0: the base exactly, 1: as trained [1.0]"
    )
    target.add_argument("input", metavar="INPUT", help=given)
    add_flags(target, Decoding)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="tailormt",
        description="Make a frozen translation model speak in your style, from a few hundred of your own sentences.",
    )
    top.add_argument("--version", action="version", version=f"tailormt {engine.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str, under: argparse._SubParsersAction | None = None) -> argparse.ArgumentParser:
        return (under or commands).add_parser(name, help=help, description=help, parents=[common()])

    job(command("customize", "from sentences to a plugin: the whole main job; resumes after a stop"), True, False)
    found = command("estimate", "what a customization would take: time, memory, disk; nothing is done")
    job(found, False, False)
    found.add_argument("--knn", action="store_true", help="with a datastore for kNN decoding beside the method's own")
    found = command("translate", "translate a file, a line for a line, or a document into the same format")
    using(found, False, INPUT)
    found.add_argument(
        "-o", "--output", default="-", metavar="OUTPUT", help="[standard output; beside a document, as NAME.zh.docx]"
    )
    add_document_flags(found)
    found.add_argument(
        "--dry-run", action="store_true", help="only show what plugins would send to a service, a request a line"
    )
    using(command("compare", "translations of base and plugin side by side"), True)
    found = command("evaluate", "BLEU, chrF, perplexity and style score with intervals and paired bootstrap")
    add_evaluate_flags(found)
    command("methods", "methods of customization and what each needs")
    found = command("proportions", "what the words of samples and sentences share with each domain")
    base(found)
    add_proportion_flags(found)

    corpus = commands.add_parser("corpus", help="samples").add_subparsers(dest="action", required=True)
    found = command("import", "read samples and report what is kept and skipped", corpus)
    found.add_argument("samples", nargs="+", metavar="FILE", help=SAMPLES)
    direction(found)
    found.add_argument("--workspace", metavar="DIR", help="where to keep the corpus")
    found.add_argument(
        "--test-files", nargs="+", default=(), metavar="FILE", help="say what of these is in the samples"
    )
    add_flags(found, CorpusOptions)
    command("samples", "sample corpora that came along: languages, lines, licence, folder", corpus)
    job(command("phrases", "step: samples to phrases"), False, True)
    job(command("memory", "step: phrases to memory"), False, True)
    job(command("train", "step: train the method"), False, True)

    bases = commands.add_parser("base", help="base models").add_subparsers(dest="action", required=True)
    add_base_commands(bases, command)
    add_train_flags(command("train", "train a base of your own from sentence pairs; both directions", bases))

    parsers = commands.add_parser("parser", help="parsers, which find the phrases").add_subparsers(
        dest="action", required=True
    )
    add_parser_commands(parsers, command)

    knn = commands.add_parser("knn", help="kNN decoding").add_subparsers(dest="action", required=True)
    add_knn_commands(knn, command, SAMPLES)

    plugin = commands.add_parser("plugin", help="plugin bundles").add_subparsers(dest="action", required=True)
    add_plugin_commands(plugin, command)

    ratings = commands.add_parser("rating", help="blind ratings: which of two translations people find better")
    add_rating_commands(ratings.add_subparsers(dest="action", required=True), command)

    benches = commands.add_parser("bench", help="experiments over public data").add_subparsers(
        dest="action", required=True
    )
    add_methods_flags(command("methods", "every method on the same samples, one table", benches))
    add_reproduce_flags(command("reproduce", "an experiment of the papers, its figures beside theirs"))

    add_job_commands(
        commands.add_parser("jobs", help="the queue").add_subparsers(dest="action", required=True), command
    )
    stores = commands.add_parser("store", help="the database: where it stands, upgrades, copies")
    add_store_commands(stores.add_subparsers(dest="action", required=True), command)

    add_artefact_commands(commands, command)
    add_upkeep_commands(command)

    tokens = commands.add_parser("token", help="tokens for programs that ask the studio")
    add_token_commands(tokens.add_subparsers(dest="action", required=True), command)
    users = commands.add_parser("user", help="accounts of people who sign in to the studio")
    add_account_commands(users.add_subparsers(dest="action", required=True), command)
    add_audit_flags(command("audit", "who did what and when: sign-ins, projects, uploads, jobs, exports"))
    clients = commands.add_parser("client", help="ask a studio that runs, here or elsewhere")
    add_client_commands(clients.add_subparsers(dest="action", required=True), command)

    found = command("demo", "the main job on a bundled sample, with a side-by-side table at the end")
    found.add_argument("-o", "--output", default="demo-out", metavar="DIR", help="folder for the plugin [demo-out]")
    found = command("worker", "do the queued jobs, on this machine or on a Ray cluster")
    found.add_argument("--once", action="store_true", help="stop when the queue is empty")
    add_backend_flags(found)
    add_replica_commands(
        commands.add_parser("replicas", help="copies of the translator on a Ray cluster").add_subparsers(
            dest="action", required=True
        ),
        command,
    )
    for name in ("serve", "studio"):
        found = command(name, "open the studio and start a local worker")
        found.add_argument("--open", action="store_true", help="open a browser")
        found.add_argument(
            "--no-sign-in", dest="sign_in", action="store_const", const="off", default=argparse.SUPPRESS,
            help="nobody signs in, also where others can reach the studio",
        )  # fmt: skip
        add_flags(found, Settings, only=("host", "port"))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 a fault of the program, 2 anything the user can mend."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # text for another program is UTF-8; a terminal shows what it can
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    args = parser().parse_args(argv)
    try:
        return run(args)
    except TailorError as error:
        return fail(args, str(error), error.exit_code)
    except KeyboardInterrupt:
        return fail(args, "Stopped at once.", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; that is no fault
        return 0
    except Exception as error:
        return fail(
            args, f"Something went wrong inside Tailor MT ({type(error).__name__}: {error}). {keep_traceback()}", 1
        )


def run(args: argparse.Namespace) -> int:
    from engine.commands import COMMANDS
    from engine.terminal import stop_on_interrupt

    args.settings = from_flags(Settings, args, load_settings().to_mapping())
    for key in ("source", "target"):  # inside, languages have their canonical tags
        if getattr(args, key, None):
            setattr(args, key, canonical(getattr(args, key)))
    name = f"{args.command} {args.action}" if getattr(args, "action", None) else args.command
    if name not in ("worker", "serve", "studio"):
        stop_on_interrupt()
    value, text = COMMANDS[name](args)
    if args.json:
        print(json.dumps(value, ensure_ascii=False, indent=2))
    elif text:
        print(text)
    sys.stdout.flush()
    return int(getattr(args, "exit_code", 0))


def fail(args: argparse.Namespace, sentence: str, code: int) -> int:
    print(f"tailormt: {sentence}", file=sys.stderr)
    if args.json:
        print(json.dumps({"error": sentence}, ensure_ascii=False))
    return code


def keep_traceback() -> str:
    """Put the traceback where a developer can find it; returns the sentence that says where."""
    try:
        file = load_settings().home_dir / "errors.log"
        with file.open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
    except Exception:
        return "The details could not be written to a log."
    return f"The details are in {file}; please report them."


if __name__ == "__main__":
    sys.exit(main())
