"""From an upload to the first customized translations: the first look, which trains nothing, and a plugin with the budget `quick`.

    python bench/first_translation.py                 the first look alone, about a minute
    python bench/first_translation.py --train         and the plugin after it
    python bench/first_translation.py --samples law.tsv --base de-en --source de --target en --sentences 1000

As in the studio: 500 sentences of the bundled samples are added to a new project of a data folder of its own, and a worker does
what follows from that. Seconds are by the clock, from the upload, a worker's start included.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "assets" / "samples"
LONGEST = 3600  # seconds to wait for a job


def ended(store: Any, number: int) -> Any:
    """The job, when it has ended. Exits where it did not end well."""
    end = time.monotonic() + LONGEST
    while (job := store.jobs.get(number)).active:
        if time.monotonic() > end:
            sys.exit(f"{job.kind} took longer than {LONGEST} s.")
        time.sleep(0.05)
    if job.state != "succeeded":
        sys.exit(f"{job.kind} {job.state}: {job.error}")
    return job


def shares(job: Any) -> list[tuple[str, float]]:
    """Seconds of each step of a job."""
    begun = [(str(row["step"]), datetime.datetime.fromisoformat(str(row["begun"])).timestamp()) for row in job.trail]
    last = job.finished.replace(tzinfo=job.finished.tzinfo or datetime.UTC).timestamp()
    ends = [moment for _, moment in begun[1:]] + [last]
    return [(step, end - moment) for (step, moment), end in zip(begun, ends, strict=True)]


def typed(service: Any, project: int) -> float:
    """Seconds from a typed sentence to its translation by the base, which is a job."""
    from engine.jobs import enqueue
    from engine.workflows.compare.systems import systems_of

    begin = time.monotonic()
    sheet = service.store.sheets.create(project, "Typed", [("The old man sat down by the river.", None)], systems_of([]))
    job = enqueue(service.store, "compare", {"comparison_id": sheet.comparison_id, "measure": False}, project_id=project)
    ended(service.store, job.id)
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--samples", type=Path, help="a text file, or a .tsv of pairs [the bundled samples]")
    parser.add_argument("--base", default="en-zh", help="one of the bundled bases [en-zh]")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from engine.core.settings import Settings
    from engine.jobs import start_background_worker, stop_background_worker
    from engine.workflows.customize.request import CustomizeRequest
    from studio.services.service import Service

    files = [args.samples] if args.samples else [SAMPLES / name / f"{name}.txt" for name in ("literary-zh", "general-zh")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(prefix="tailormt-first-") as temporary:
        home = Path(temporary) / "home"
        settings = Settings(home=str(home), device="cpu")
        service = Service(settings)
        project = service.create_project("First", args.source, args.target, str(ROOT / "assets" / "models" / args.base))
        file = (Path(temporary) / "style").with_suffix(files[0].suffix)
        file.write_text("\n".join(lines[: args.sentences]) + "\n", encoding="utf-8")
        rows: list[tuple[str, float]] = []
        begin = time.monotonic()
        service.add_samples(project, [file])
        start_background_worker(settings)
        try:
            preview = service.workspace(project.id) / "preview.json"
            while not preview.exists():
                if failed := [job for job in service.store.jobs.list(project.id) if job.state == "failed"]:
                    sys.exit(f"{failed[0].kind} failed: {failed[0].error}")
                time.sleep(0.2)
            rows.append(("upload to the first look", time.monotonic() - begin))
            look = next(job for job in service.store.jobs.list(project.id) if job.kind == "preview")
            rows += [(f"– {step}", seconds) for step, seconds in shares(ended(service.store, look.id))]
            rows.append(("upload to phrases and proportions", time.monotonic() - begin))
            seconds = [typed(service, project.id) for _ in range(5)]
            rows.append(("a typed sentence to its translation, median of 5", statistics.median(seconds)))
            if args.train:
                begin = time.monotonic()
                run = service.start_run(project, CustomizeRequest(method="memory_adapter", budget="quick"))
                run = ended(service.store, run.id)
                rows.append(("start to the plugin, memory adapter, `quick`", time.monotonic() - begin))
                rows += [(f"– {step}", seconds) for step, seconds in shares(run)]
        finally:
            stop_background_worker(settings)
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; {args.sentences} sentences\n")
    print("| what | seconds |\n|---|---:|")
    print("\n".join(f"| {name} | {value:.{1 if value < 10 else 0}f} |" for name, value in rows))


if __name__ == "__main__":
    main()
