"""Load: many clients translate at once against one studio, with one base and many plugins.

    python bench/clients.py                                     50 clients, 20 plugins, 10 minutes
    python bench/clients.py --clients 10 --plugins 4 --minutes 1

A data folder of its own; the plugins are memory adapters of one base, untrained, which cost what trained ones cost. Each client
asks for one sentence of real text after another, each time with the base or another plugin, as CAT tools ask through the
LibreTranslate interface, and waits for the answer. Printed: answers, errors, latency (p50, p95, p99), and the memory of the
studio's process tree, as its mean after a warm-up of a fifth of the time and over the last fifth.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "assets" / "samples"
FLAT = 5.0  # percent that memory may grow by


def make_plugins(folder: Path, count: int) -> list[Path]:
    """Memory adapters as they are before training, with the memory that `quick` gives them."""
    sys.path.insert(0, str(ROOT / "bench"))
    from measures.serving import write_bundles
    from measures.setup import Setup

    made = write_bundles(Setup(), folder, count)
    print(f"{len(made)} plugins made", file=sys.stderr, flush=True)
    return list(made)


def fill(home: Path, plugins: list[Path]) -> list[int]:
    """A project that has the plugins; their numbers."""
    from engine.core.settings import Settings
    from engine.plugins.library import Library
    from engine.store import Store

    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    project = store.projects.create("Load", "en", "zh", str(ROOT / "assets" / "models" / "en-zh"))
    return [Library(store, settings).take_in(project, path).id for path in plugins]


@contextlib.contextmanager
def served(home: Path, loaded: int) -> Iterator[tuple[str, int]]:
    """The studio over the home; its address and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "TAILORMT_HOME": str(home), "TAILORMT_PORT": str(port), "TAILORMT_DEVICE": "cpu", "TAILORMT_LOCAL_WORKER": "no",
        "TAILORMT_LOADED_PLUGINS": str(loaded), "TAILORMT_API_RATE": "0",
    }  # fmt: skip
    with (home / "studio.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine.cli", "serve"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=2):
                break
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"The studio did not start; see {home / 'studio.log'}.")
            time.sleep(0.1)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


class Clients:
    """Threads that ask until the time is over, and what they met."""

    def __init__(self, url: str, plugins: list[int], lines: list[str], seconds: float) -> None:
        self.url, self.plugins, self.lines = url, plugins, lines
        self.end = time.monotonic() + seconds
        self.taken: list[float] = []
        self.errors: Counter[str] = Counter()
        self._lock = threading.Lock()

    def ask(self, seed: int) -> None:
        drawn = random.Random(seed)
        while time.monotonic() < self.end:
            plugin = drawn.choice(["base", *self.plugins])
            body = json.dumps(
                {"q": drawn.choice(self.lines), "source": "en", "target": "zh", "format": "text"}
            ).encode()
            request = urllib.request.Request(
                f"{self.url}/cat/1/{plugin}/translate", body, {"Content-Type": "application/json"}
            )
            begin = time.perf_counter()
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    text = json.load(answer)["translatedText"]
                fault = "" if text.strip() else "an empty translation"
            except urllib.error.HTTPError as error:
                fault = f"HTTP {error.code}: {error.read(200).decode(errors='replace')}"
            except (OSError, ValueError, KeyError) as error:
                fault = f"{type(error).__name__}: {error}"
            with self._lock:
                if fault:
                    self.errors[fault] += 1
                else:
                    self.taken.append(time.perf_counter() - begin)

    def run(self, count: int, watch: int) -> list[tuple[float, float]]:
        """All of them until the end; (seconds since the start, MB) of the process tree `watch`, every two seconds."""
        import psutil

        threads = [threading.Thread(target=self.ask, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        begin, memory, root = time.monotonic(), [], psutil.Process(watch)
        while any(thread.is_alive() for thread in threads):
            tree = [root, *root.children(recursive=True)]
            size = 0
            for process in tree:
                with contextlib.suppress(psutil.Error):
                    size += process.memory_info().rss
            memory.append((time.monotonic() - begin, size / 1e6))
            time.sleep(2)
        return memory


def means(memory: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """MB after the warm-up (the second fifth of the time) and in the last fifth."""
    early = [size for at, size in memory if 0.2 * seconds <= at < 0.4 * seconds]
    late = [size for at, size in memory if 0.8 * seconds <= at <= seconds]
    return statistics.mean(early), statistics.mean(late)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--plugins", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--loaded", type=int, default=20, help="plugins that the studio keeps loaded [20]")
    parser.add_argument(
        "--bundles", type=Path, help="a folder for the plugins, which are made where they are not there"
    )
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    lines = (SAMPLES / "general-en" / "general-en.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if 20 <= len(line) <= 160][:2000]
    with tempfile.TemporaryDirectory(prefix="tailormt-load-") as temporary:
        bundles = make_plugins(Path(temporary), args.plugins)
        home = Path(temporary) / "home"
        home.mkdir()
        numbers = fill(home, bundles)
        seconds = 60 * args.minutes
        with served(home, args.loaded) as (url, process):
            clients = Clients(url, numbers, lines, seconds)
            memory = clients.run(args.clients, process)
    taken = sorted(clients.taken)
    cuts = statistics.quantiles(taken, n=100)
    early, late = means(memory, seconds)
    growth = 100 * (late / early - 1)
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"{args.clients} clients, {len(numbers)} plugins and the base, {args.minutes:g} minutes\n")
    print("| answers | a second | errors | p50 | p95 | p99 | memory after warm-up | at the end | growth |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    print(
        f"| {len(taken)} | {len(taken) / seconds:.1f} | {sum(clients.errors.values())} | {cuts[49]:.2f} s | {cuts[94]:.2f} s | "
        f"{cuts[98]:.2f} s | {early:.0f} MB | {late:.0f} MB | {growth:+.1f} % |"
    )
    for fault, count in clients.errors.most_common(5):
        print(f"{count} times: {fault}")
    sys.exit(1 if clients.errors or growth > FLAT else 0)


if __name__ == "__main__":
    main()
