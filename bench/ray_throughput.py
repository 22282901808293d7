"""What a Ray cluster costs and gives: seconds until a task, an actor and a job are at work, and texts a second over 1, 2
and 4 workers. The cluster is real, of several nodes on this machine.

    python bench/ray_throughput.py                    # ten minutes or so on a quiet machine
    python bench/ray_throughput.py --texts 512        # shorter: the actors' start then hides what they give
    taskset -c 0 python bench/ray_throughput.py --part translating --workers 1

Three loads: `waiting` holds its worker for a fixed time without using a processor, as a worker does whose GPU is busy, and
so shows what Ray itself loses; `back-translating` (greedy) and `translating` (beam 4) use a bundled base and share this
machine's cores. Of these two, the processor time a text is that of all processes of the cluster while the second half of the
parts is done: it shows what Ray costs wherever other work shares the cores, or workers are more than cores.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from engine.core.progress import Progress  # noqa: E402
from engine.core.settings import Settings  # noqa: E402
from tests.ray_cluster import ray_cluster  # noqa: E402

LOADS = ("waiting", "back-translating", "translating")
WAIT = 0.5  # seconds a part of the waiting load
PARTS = 96


class Waiting:
    """A stage that uses no processor."""

    def __init__(self, **arguments: Any) -> None:
        self.seconds = float(arguments["seconds"])

    def __call__(self, texts: list[str]) -> list[str]:
        time.sleep(self.seconds)
        return texts


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def processor() -> float:
    """CPU seconds of this process and of all that it started and that are alive: the whole cluster."""
    import psutil

    current = psutil.Process()
    seconds = 0.0
    for process in [current, *current.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


def overheads(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """(what, seconds, CPU seconds) of one task, one actor and one job, over what the work itself takes."""
    import ray

    nothing = ray.remote(num_cpus=1)(_nothing)
    ray.get(nothing.remote())  # a process is there
    before = processor()
    alone = statistics.median(timed(lambda: ray.get(nothing.remote())) for _ in range(100))
    yield "an empty task, there and back", f"{1000 * alone:.1f} ms", f"{10 * (processor() - before):.1f} ms"
    ray.get([nothing.remote() for _ in range(50)])  # processes on all nodes
    before = processor()
    many = timed(lambda: ray.get([nothing.remote() for _ in range(1000)]))
    yield "an empty task among 1,000", f"{many:.1f} ms", f"{processor() - before:.1f} ms"
    holder = ray.remote(num_cpus=1)(Holder)

    def actor() -> None:
        instance = holder.remote()
        ray.get(instance.here.remote())
        ray.kill(instance)

    started = statistics.median(timed(actor) for _ in range(3))
    yield "an actor's process, until it answers", f"{started:.2f} s", ""
    local, there = (statistics.median(jobs(variant)) for variant in (settings.replace(backend="local"), settings))
    yield "an empty job as a process of the worker, from the queue to its end", f"{local:.2f} s", ""
    yield "the same as a Ray task", f"{there:.2f} s", ""


def _nothing() -> None:
    return None


class Holder:
    def here(self) -> bool:
        return True


def jobs(settings: Settings, count: int = 3) -> list[float]:
    """Seconds from the queue to the end of jobs that do nothing, one after the other."""
    from engine.jobs import worker
    from engine.store import Store

    with tempfile.TemporaryDirectory() as home:
        job_settings = settings.replace(home=home)
        store = Store(job_settings.store_url)
        stop = threading.Event()
        options = {"poll": 0.05, "kinds": ("worker_kinds",), "stop": stop}
        thread = threading.Thread(target=worker.run, args=(job_settings,), kwargs=options)
        thread.start()

        def one() -> None:
            job = store.jobs.enqueue("count", {"until": 0})
            while store.jobs.get(job.id).active:
                time.sleep(0.02)
            assert store.jobs.get(job.id).state == "succeeded"

        seconds = [timed(one) for _ in range(count)]
        stop.set()
        thread.join()
        store.close()
    from engine.jobs.backends.ray_cluster import join

    join(settings.ray_address)  # a worker that ends disconnects
    return seconds


def spread(
    settings: Settings, stage: str, arguments: dict[str, Any], parts: Sequence[Any], workers: int
) -> tuple[float, float, float, float]:
    """(seconds until the first part is there, until all are, parts a second in the second half, CPU seconds a part there) over so
    many actors.

    Parts come in their order, several at once where an earlier one was late: only over many does a pace mean something.
    """
    from engine.jobs.backends.ray_data import RayMap

    begin = time.perf_counter()
    results = RayMap(settings.replace(ray_actors=workers)).take(stage, arguments, parts, Progress())
    assert results is not None, "the cluster has no room"
    at, used, half = [], [0.0, 0.0], len(parts) // 2
    for number, _ in enumerate(results, 1):
        at.append(time.perf_counter() - begin)
        if number in (half, len(parts)):  # the actors are still alive
            used[number > half] = processor()
    rest = len(at) - half
    return at[0], at[-1], rest / (at[-1] - at[half - 1]), (used[1] - used[0]) / rest


def texts_of(count: int) -> list[str]:
    lines = (ROOT / "assets/samples/elizabethan-en/elizabethan-en.txt").read_text(encoding="utf-8").splitlines()
    return [lines[i % len(lines)] for i in range(count)]


def waiting(settings: Settings, counts: Sequence[int]) -> Iterator[tuple[str, ...]]:
    parts = [["x"]] * PARTS
    for workers in counts:
        first, total, pace, _ = spread(settings, "bench.ray_throughput:Waiting", {"seconds": WAIT}, parts, workers)
        ideal = f"{pace * WAIT / workers:.0%}"
        yield str(workers), f"{first:.1f} s", f"{pace:.1f} parts/s", "", ideal, f"{PARTS * WAIT / total:.2f}"


def translating(
    settings: Settings, counts: Sequence[int], texts: int, decoding: dict[str, Any] | None
) -> Iterator[tuple[str, ...]]:
    """Back-translation, or with `decoding` a translation with these settings."""
    from engine.base import BaseModel
    from engine.base.remote import base_arguments
    from engine.decoding.remote import BACK_TRANSLATE, BackTranslate

    base = BaseModel.load(ROOT / "assets/models/en-zh", "en", "zh", settings=settings)
    arguments = base_arguments(base) | {"decoding": decoding}
    sentences = texts_of(texts)
    size = max(8, texts // PARTS)
    parts = [sentences[i : i + size] for i in range(0, texts, size)]
    stage = BackTranslate(**arguments | {"settings": settings.to_mapping()})
    stage(parts[0])  # warm
    half = len(parts) // 2
    before = [timed(lambda: [stage(part) for part in parts[:half]])]
    used = time.process_time()
    before.append(timed(lambda: [stage(part) for part in parts[half:]]))
    alone, cost = sum(before), (time.process_time() - used) / (len(parts) - half)
    yield "this process", "", f"{texts / alone:.1f} texts/s", f"{1e3 * cost / size:.2f} ms", "", "1.00"
    for workers in counts:
        first, total, pace, spent = spread(settings, BACK_TRANSLATE, arguments, parts, workers)
        cpu = f"{1e3 * spent / size:.2f} ms ({spent / cost - 1:+.0%})"
        yield str(workers), f"{first:.1f} s", f"{size * pace:.1f} texts/s", cpu, "", f"{alone / total:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("all", "costs", *LOADS), default="all", help="only so much [all]")
    parser.add_argument("--workers", default="1,2,4", help="how many, by comma [1,2,4]")
    parser.add_argument("--texts", type=int, default=3072, help="texts of the loads that translate [3072]")
    args = parser.parse_args()
    counts = [int(count) for count in args.workers.split(",")]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "integration")])
    with ray_cluster(nodes=2, cpus=3, environment={"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}) as cluster:
        from engine.jobs.backends.ray_cluster import join

        with tempfile.TemporaryDirectory() as home:
            settings = Settings(home=home, backend="ray", ray_address=cluster.address, device="cpu", threads=1, ray_actors=0)
            join(cluster.address)
            cores = len(os.sched_getaffinity(0))
            print(f"{cores} core(s) for all of it; load of the machine before: {os.getloadavg()[0]:.1f}\n")
            if args.part in ("all", "costs"):
                print("| what | time | CPU time of all processes |\n|---|---|---|")
                for costs in overheads(settings):
                    print("| " + " | ".join(costs) + " |", flush=True)
            print(
                "\n| load | workers | until the first part | pace in the second half | CPU time of all processes a text "
                "| of the ideal | speed-up with the start |"
            )
            print("|---|---|---|---|---|---|---|")
            loads: dict[str, Callable[..., Iterator[tuple[str, ...]]]] = {
                "waiting": waiting,
                "back-translating": functools.partial(translating, texts=args.texts, decoding=None),
                "translating": functools.partial(translating, texts=args.texts, decoding={}),
            }
            for name, load in loads.items():
                for row in load(settings, counts) if args.part in ("all", name) else ():
                    print(f"| {name} | " + " | ".join(row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
