"""The command line `tailormt`: the commands of commands.toml, one function per command, errors as one sentence each.

Heavy modules are only imported when a command runs, so that --help is fast.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence

import engine
from engine.cli.commands import add_commands, named
from engine.core.cores import share_cores
from engine.core.languages import canonical
from engine.core.options import from_flags
from engine.core.settings import Settings, load_settings
from engine.errors import TailorError

# Errors of invalid or unsuitable paths, which the user can fix.
OF_PATHS = {
    errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM,
    errno.EROFS,
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; its help lists the commands by group."""
    top = argparse.ArgumentParser(
        prog="tailormt",
        description="Make a frozen translation model speak in your style, from a few hundred of your own sentences.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tailormt {engine.__version__}")
    top.epilog = add_commands(top)
    top.usage = "tailormt [-h] [--version] COMMAND ..."
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 for success, 1 for an internal error, 2 for an error the user can fix."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # UTF-8 for other programs; terminals keep their encoding
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    share_cores()
    args = parser().parse_args(argv)
    try:
        return run(args)
    except TailorError as error:
        return fail(args, str(error), error.exit_code)
    except KeyboardInterrupt:
        return fail(args, "Stopped at once.", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe: no error
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in OF_PATHS and error.filename is not None:
            return fail(args, f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}. Check the path.", 2)
        return fail(args, f"Something went wrong inside Tailor MT ({type(error).__name__}: {error}). {keep_traceback()}", 1)


def run(args: argparse.Namespace) -> int:
    from engine.cli.bases import demonstration_note
    from engine.cli.terminal import TerminalProgress, stop_on_interrupt

    args.settings = from_flags(Settings, args, load_settings().to_mapping())
    for key in ("source", "target"):  # languages are handled by their canonical tags
        if getattr(args, key, None):
            setattr(args, key, canonical(getattr(args, key)))
    if args.command not in ("worker", "serve", "studio"):
        stop_on_interrupt()
    if not (args.quiet or args.json) and (note := demonstration_note(args)):
        print(note, file=sys.stderr, flush=True)
    args.progress = TerminalProgress(args.quiet)
    try:
        value, text = named(f"cli.{args.run}")(args)
    finally:
        args.progress.close()
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
    """Append the traceback to errors.log in the home folder; returns a sentence that says where."""
    try:
        file = load_settings().home_dir / "errors.log"
        with file.open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
    except Exception:
        return "The details could not be written to a log."
    return f"The details are in {file}; please report them."
