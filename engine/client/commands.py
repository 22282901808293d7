"""The commands `tailormt client …`, which ask a studio elsewhere, and `tailormt token …`, which let programs ask this one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InputError
from engine.lines import read_input
from engine.options import add_flags
from engine.settings import Settings
from engine.terminal import TerminalProgress, table

if TYPE_CHECKING:
    from engine.client import Client

__all__ = ["CLIENT_COMMANDS", "add_client_commands", "add_token_commands"]

Shown = tuple[Any, str]
Command = Callable[..., argparse.ArgumentParser]
WHERE = ("server", "token")


def add_client_commands(actions: Any, command: Command) -> None:
    """`tailormt client …`."""

    def remote(name: str, help: str) -> argparse.ArgumentParser:
        found = command(name, help, actions)
        add_flags(found, Settings, only=WHERE)
        return found

    def project(found: argparse.ArgumentParser, required: bool = True) -> None:
        found.add_argument(
            "--project", required=required, default="", metavar="ID", help="the project's number or name"
        )

    remote("status", "the studio, its queue, and what the token may do")
    remote("projects", "projects of the studio")
    found = remote("create", "a new project")
    found.add_argument("name", help="its name")
    found.add_argument("--source", required=True, metavar="LANG", help="language translated from")
    found.add_argument("--target", required=True, metavar="LANG", help="language translated to")
    found.add_argument("--base", default="", metavar="NAME", help="short name of a base [one that knows the pair]")
    found = remote("upload", "send samples to a project and wait until they are read")
    found.add_argument("samples", nargs="+", metavar="FILE", help="files with your sentences")
    project(found)
    found = remote("run", "start a training and wait for its plugin")
    project(found)
    found.add_argument("--method", default="memory_adapter", metavar="NAME", help="[memory_adapter]")
    found.add_argument("--budget", default="balanced", choices=("quick", "balanced", "best"), help="[balanced]")
    found.add_argument("--no-wait", action="store_true", help="do not wait; the job goes on all the same")
    remote("jobs", "jobs of the studio")
    remote("wait", "follow a job to its end").add_argument("id", type=int, help="the job's number")
    remote("cancel", "ask a job to stop").add_argument("id", type=int, help="the job's number")
    project(remote("plugins", "plugins of a project or of all"), required=False)
    found = remote("download", "copy a plugin to a file")
    found.add_argument("id", type=int, help="the plugin's number")
    found.add_argument("-o", "--output", required=True, metavar="PLUGIN.zip", help="the file to write")
    found.add_argument(
        "--with-phrases", action=argparse.BooleanOptionalAction, default=True, help="phrases in the copy"
    )
    found = remote("import", "send a bundle to a project")
    found.add_argument("bundle", metavar="PLUGIN.zip", help="the bundle to send")
    project(found)
    found = remote("translate", "translate a file by the studio, a line for a line")
    found.add_argument("input", metavar="INPUT.txt", help="a sentence a line; - reads standard input")
    project(found, required=False)
    found.add_argument("--plugin", default="", metavar="ID", help="number or name, or base [the project's default]")
    found.add_argument("--source", default="", metavar="LANG", help="[the project's, or told from the text]")
    found.add_argument("--target", default="", metavar="LANG", help="[the project's]")
    found.add_argument("--strength", type=float, default=1.0, metavar="S", help="0: the base, 1: as trained [1.0]")
    found.add_argument("-o", "--output", default="-", metavar="OUTPUT.txt", help="[standard output]")
    found = remote("document", "translate a document by the studio; it keeps its format")
    found.add_argument("input", metavar="FILE", help="docx, odt, xliff, po, srt, vtt, html, md, txt")
    project(found)
    found.add_argument("--plugin", default="", metavar="ID", help="number or name, or base [the project's default]")
    found.add_argument("--strength", type=float, default=1.0, metavar="S", help="0: the base, 1: as trained [1.0]")
    found.add_argument("-o", "--output", default="", metavar="FILE", help="[the input's name with the language]")
    found = remote("compare", "compare the base with plugins over a file, and wait for the figures")
    found.add_argument("files", nargs="+", metavar="FILE", help="sentences; or two texts, sentences and references")
    project(found)
    found.add_argument(
        "--plugin", action="append", default=[], metavar="ID[@S]", help="number or name, with a strength; up to three"
    )
    found.add_argument("-o", "--output", default="", metavar="FILE", help="also write it: .tsv .xlsx .tmx .xlf .html")
    found = remote("rating", "the table of a blind rating round")
    found.add_argument("id", type=int, help="the round's number")
    found.add_argument("-o", "--output", default="", metavar="FILE", help="also write all answers: .csv or .json")


def add_token_commands(actions: Any, command: Command) -> None:
    """`tailormt token …`."""
    found = command("create", "a new token for a program; it is shown once", actions)
    found.add_argument("name", help="whom it is for, so that you know later which one to revoke")
    found.add_argument(
        "--scope",
        default="read,translate",
        metavar="SCOPES",
        help="of read, translate, write, admin, metrics, by commas [read,translate]",
    )
    found.add_argument("--user", default="", metavar="NAME", help="for what this account may [every project]")
    found.add_argument("--project", type=int, metavar="ID", help="for one project alone")
    found.add_argument("--days", type=int, metavar="N", help="days until it runs out [never]")
    command("list", "tokens that work", actions).add_argument("--revoked", action="store_true", help="the others too")
    command("revoke", "let a token open nothing from now on", actions).add_argument(
        "id", type=int, help="the token's number"
    )


# -- tokens


def token_create(args: argparse.Namespace) -> Shown:
    from engine.store import Store

    store = Store(args.settings.store_url)
    user = store.accounts.named(args.user).id if args.user else None
    row, secret = store.tokens.create(
        args.name, args.scope.split(","), user_id=user, project_id=args.project, days=args.days
    )
    text = f"{secret}\nThis is token {row.id}, {row.name}, for {row.scopes}. It is not shown again."
    return {"id": row.id, "name": row.name, "scopes": row.scopes.split(","), "token": secret}, text


def token_list(args: argparse.Namespace) -> Shown:
    from engine.store import Store

    rows = Store(args.settings.store_url).tokens.list(revoked=args.revoked)
    value = [
        {"id": row.id, "name": row.name, "begins": row.shown, "scopes": row.scopes.split(","),
         "created": row.created.isoformat(), "used": row.used.isoformat() if row.used else None,
         "revoked": row.revoked.isoformat() if row.revoked else None, "characters": row.characters,
         "user": row.user_id, "project": row.project_id, "expires": row.expires.isoformat() if row.expires else None}
        for row in rows
    ]  # fmt: skip
    text = table(
        ["id", "name", "begins", "scopes", "project", "used", "characters", "runs out", "revoked"],
        [[row.id, row.name, f"{row.shown}…", row.scopes, row.project_id or "all",
          f"{row.used:%Y-%m-%d %H:%M}" if row.used else "never", f"{row.characters:,}",
          f"{row.expires:%Y-%m-%d}" if row.expires else "never", f"{row.revoked:%Y-%m-%d}" if row.revoked else ""]
         for row in rows],
    )  # fmt: skip
    return value, text if rows else "There are no tokens. Make one with `tailormt token create NAME`."


def token_revoke(args: argparse.Namespace) -> Shown:
    from engine.store import Store

    row = Store(args.settings.store_url).tokens.revoke(args.id)
    return {"id": row.id}, f"Token {row.id}, {row.name}, opens nothing any more."


# -- a studio elsewhere


def connected(args: argparse.Namespace) -> Client:
    from engine.client import Client

    settings: Settings = args.settings
    host = settings.host if settings.host not in ("0.0.0.0", "::", "") else "127.0.0.1"
    return Client(settings.server or f"http://{host}:{settings.port}", settings.token)


def project_number(client: Client, wanted: str) -> int:
    """A project by number or name."""
    if wanted.isdigit():
        return int(wanted)
    for row in client.projects():
        if row["name"].casefold() == wanted.casefold():
            return int(row["id"])
    raise InputError(f"The studio at {client.url} has no project {wanted}; see `tailormt client projects`.")


def follow(args: argparse.Namespace, client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Show a job's steps until its end."""
    progress = TerminalProgress(quiet=args.quiet)

    def said(row: dict[str, Any]) -> None:
        progress.check()
        if row["state"] == "running":
            step = row["step"] or "Starting"
            if (step, row["step_index"]) != (progress.step, progress.index):
                progress.begin(step, row["step_index"], row["steps"])
            share = row["fraction"] * row["steps"] - row["step_index"]
            progress.advance(max(0.0, min(1.0, share)), 1)

    try:
        return client.wait(job, said)
    finally:
        progress.close()


def status(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.status()
    text = (
        f"Tailor MT {found['version']} at {client.url}: {found['device']}. Jobs: {found['jobs_running']} at work, "
        f"{found['jobs_waiting']} waiting, {found['workers']} workers. You may {', '.join(found['scopes'])}."
    )
    return found, text


def projects(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.projects()
    heads = ["id", "name", "source", "target", "base", "sentences", "plugins", "default_plugin"]
    text = table(heads, [["" if row[head] is None else row[head] for head in heads] for row in found])
    return found, text if found else "There are no projects yet. Make one with `tailormt client create`."


def create(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.create_project(args.name, args.source, args.target, args.base)
    return found, f"Project {found['id']}, {found['name']}: {found['source']} to {found['target']} by {found['base']}."


def upload(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        number = project_number(client, args.project)
        job = follow(args, client, client.upload(number, args.samples))
    return job, f"{job['result'].get('kept', 0):,} sentences kept, {job['result'].get('phrases', 0):,} phrases found."


def run(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        job = client.start_run(project_number(client, args.project), args.method, args.budget)
        if args.no_wait:
            return job, f"Job {job['id']} is queued; follow it with `tailormt client wait {job['id']}`."
        job = follow(args, client, job)
    return job, f"Plugin {job['result'].get('plugin_id')} is made."


def jobs(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.jobs()
    rows = [
        [row["id"], row["kind"], row["project"] or "", row["state"], f"{row['fraction']:.0%}", row["step"]]
        for row in found
    ]
    return found, table(["id", "kind", "project", "state", "done", "step"], rows) if rows else "There are no jobs."


def wait(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        job = follow(args, client, client.job(args.id))
    return job, f"Job {job['id']} has {job['state']}. {json.dumps(job['result'], ensure_ascii=False)[:400]}"


def cancel(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        job = client.cancel(args.id)
    return job, f"Job {job['id']} is {job['state']}, and asked to stop."


def plugins(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.plugins(project_number(client, args.project) if args.project else None)
    rows = [
        [row["id"], row["name"], row["method"], row["project"], "default" if row["default"] else ""] for row in found
    ]
    return found, table(["id", "name", "method", "project", ""], rows) if rows else "There are no plugins yet."


def download(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        client.download_plugin(args.id, args.output, with_phrases=args.with_phrases)
    return {"output": args.output}, f"Wrote {args.output}."


def import_(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.import_plugin(project_number(client, args.project), args.bundle)
    return found, f"Imported {found['name']} as plugin {found['id']}."


def translate(args: argparse.Namespace) -> Shown:
    from engine.files import check_writable, replacing

    lines = read_input(args.input, args.source or "en")
    if args.output != "-":
        check_writable(Path(args.output), "the translation")
    results: list[str] = []
    progress = TerminalProgress(quiet=args.quiet)
    progress.begin("Translating")
    try:
        with connected(args) as client:
            wish = {name: getattr(args, name) or None for name in ("project", "plugin", "source", "target")}
            for start in range(0, len(lines), 64):
                results += client.translate(lines[start : start + 64], strength=args.strength, **wish)
                progress.advance(len(results), len(lines))
    finally:
        progress.close()
    text = "\n".join(" ".join(line.split()) for line in results)
    if args.output == "-":
        return {"translations": results}, text
    with replacing(Path(args.output), "the translation") as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    return {"output": args.output, "lines": len(results)}, ""


def document(args: argparse.Namespace) -> Shown:
    from engine.files import check_writable

    with connected(args) as client:
        number = project_number(client, args.project)
        path = Path(args.input)
        target = client.project(number)["target"]
        output = Path(args.output or path.with_suffix(f".{target}{path.suffix}"))
        check_writable(output, "the translation")
        sent = client.send_document(number, path, args.plugin, args.strength)
        follow(args, client, sent["job"])
        client.download_document(sent["id"], output)
        found = client.job(sent["id"])["result"]
    doubts = f" {found['doubtful']:,} to look at." if found.get("doubtful") else ""
    return {"output": str(output), **found}, f"Wrote {output}: {found.get('units', 0):,} texts translated.{doubts}"


def system(text: str) -> tuple[str, float]:
    """A plugin's name or number, and a strength where one stands behind the last @."""
    name, _, strength = text.rpartition("@")
    try:
        return (name, float(strength)) if name else (text, 1.0)
    except ValueError:
        return text, 1.0


def compare(args: argparse.Namespace) -> Shown:
    from engine.files import check_writable

    if args.output:
        check_writable(Path(args.output), "the comparison")
    systems = [system(one) for one in args.plugin]
    with connected(args) as client:
        made = client.compare_files(project_number(client, args.project), args.files, systems)
        follow(args, client, made["job"])
        number = made["comparison"]["id"]
        rows = client.figures(number)
        if args.output:
            client.export_comparison(number, args.output)
        found = client.comparison(number)
    heads = ["measure", "system", "score", "low", "high", "p"]
    cells = [
        [row["title"], row["system"], f"{row['score']:.1f}", f"{row['low']:.1f}", f"{row['high']:.1f}",
         "" if row["p"] is None else f"{row['p']:.3f}"]
        for row in rows
    ]  # fmt: skip
    text = f"{found['different']:,} of {found['sentences']:,} sentences differ (comparison {number})."
    return {"comparison": number, "figures": rows}, f"{text}\n{table(heads, cells)}" if rows else text


def rating(args: argparse.Namespace) -> Shown:
    with connected(args) as client:
        found = client.rating_summary(args.id)
        if args.output:
            client.export_rating(args.id, args.output)
    return found["summary"], found["text"]


CLIENT_COMMANDS = {
    "token create": token_create,
    "token list": token_list,
    "token revoke": token_revoke,
    "client status": status,
    "client projects": projects,
    "client create": create,
    "client upload": upload,
    "client run": run,
    "client jobs": jobs,
    "client wait": wait,
    "client cancel": cancel,
    "client plugins": plugins,
    "client download": download,
    "client import": import_,
    "client translate": translate,
    "client document": document,
    "client compare": compare,
    "client rating": rating,
}
