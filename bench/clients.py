"""Load: many clients translate at once against one studio, with one base and many plugins.

    python bench/clients.py                                     50 clients, 20 plugins, 10 minutes
    python bench/clients.py --clients 10 --plugins 4 --minutes 1
    python bench/clients.py --hostile                           the same twice, the second time with a hostile client among them

A data folder of its own; the plugins are memory adapters of one base, untrained, which cost what trained ones cost. Each client
asks for one sentence of real text after another, each time with the base or another plugin, as CAT tools ask through the
LibreTranslate interface, and waits for the answer; each has a token of its own, since the studio gives turns to tokens. A
hostile client sends the largest texts that are taken, four at once, and the next as soon as it has an answer.

Printed: answers, errors, latency (p50, p95, p99), and the memory of the studio's process tree, as its mean after a warm-up of a
fifth of the time and over the last fifth; with `--hostile` p50 and p99 of the others with and without it, and their ratios: p99
may be twice as long.
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
AT_ONCE = 4  # requests of a hostile client
WORSE = 2.0  # times that p99 of the others may be as long beside it


def make_plugins(folder: Path, count: int) -> list[Path]:
    """Memory adapters as they are before training, with the memory that `quick` gives them."""
    sys.path.insert(0, str(ROOT / "bench"))
    from measures.serving import write_bundles
    from measures.setup import Setup

    plugins = write_bundles(Setup(), folder, count)
    print(f"{len(plugins)} plugins made", file=sys.stderr, flush=True)
    return list(plugins)


def fill(home: Path, plugins: list[Path], clients: int = 0) -> tuple[list[int], list[str]]:
    """A project that has the plugins; their numbers, and a token for each client."""
    from engine.core.settings import Settings
    from engine.plugins.library import Library
    from engine.store import Store

    settings = Settings(home=str(home), device="cpu")
    store = Store(settings.store_url)
    project = store.projects.create("Load", "en", "zh", str(ROOT / "assets" / "models" / "en-zh"))
    tokens = [store.tokens.create(f"client {number}")[1] for number in range(clients)]
    return [Library(store, settings).take_in(project, path).id for path in plugins], tokens


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
        process = subprocess.Popen([sys.executable, "-m", "engine.cli", "serve"], cwd=ROOT, env=environment, stdout=log, stderr=log)
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

    def __init__(self, url: str, plugins: list[int], tokens: list[str], lines: list[str], seconds: float) -> None:
        self.url, self.plugins, self.tokens, self.lines = url, plugins, tokens, lines
        self.seconds, self.end = seconds, 0.0
        self.taken: list[float] = []
        self.errors: Counter[str] = Counter()
        self.hostile: Counter[str] = Counter()  # what a hostile client was answered
        self._lock = threading.Lock()

    def send(self, plugin: int | str, text: str, token: str, wait: float) -> str:
        """The translation; waits no longer than so many seconds."""
        body = json.dumps({"q": text, "source": "en", "target": "zh", "format": "text"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{self.url}/cat/1/{plugin}/translate", body, headers)
        with urllib.request.urlopen(request, timeout=wait) as answer:
            return str(json.load(answer)["translatedText"])

    def overload(self, seed: int) -> None:
        """Send the largest texts that are taken until the end, each one different, with the last of the tokens."""
        from studio.api.translate import MOST_TEXT

        drawn = random.Random(-1 - seed)
        while (left := self.end - time.monotonic()) > 0:
            text = ""
            while len(text) < MOST_TEXT:
                text += f"{drawn.choice(self.lines)} Number {drawn.randrange(10**6)} says so. "
            try:
                self.send("base", text[:MOST_TEXT], self.tokens[-1], left)
                self.hostile["answered"] += 1
            except urllib.error.HTTPError as error:
                self.hostile[f"HTTP {error.code}"] += 1
            except OSError:
                self.hostile["left at the end"] += 1

    def ask(self, seed: int) -> None:
        drawn = random.Random(seed)
        while time.monotonic() < self.end:
            choices: list[int | str] = ["base", *self.plugins]
            plugin = drawn.choice(choices)
            begin = time.perf_counter()
            try:
                text = self.send(plugin, drawn.choice(self.lines), self.tokens[seed], 120)
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

    def run(self, count: int, watch: int, hostile: bool = False) -> list[tuple[float, float]]:
        """All of them for the time, one of them hostile where asked; (seconds since the start, MB) of the process tree `watch`."""
        import psutil

        self.send("base", self.lines[0], self.tokens[0], 120)  # what is loaded once is no part of the times
        self.end = time.monotonic() + self.seconds
        work = [(self.ask, number) for number in range(count - hostile)]
        work += [(self.overload, number) for number in range(AT_ONCE * hostile)]
        threads = [threading.Thread(target=run, args=(number,), daemon=True) for run, number in work]
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
    parser.add_argument("--bundles", type=Path, help="a folder for the plugins, which are made where they are not there")
    parser.add_argument("--hostile", action="store_true", help="a second time, with one hostile client among them")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    lines = (SAMPLES / "general-en" / "general-en.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if 20 <= len(line) <= 160][:2000]
    seconds = 60 * args.minutes
    runs = []
    with tempfile.TemporaryDirectory(prefix="tailormt-load-") as temporary:
        bundles = make_plugins(Path(temporary), args.plugins) if args.plugins else []
        home = Path(temporary) / "home"
        home.mkdir()
        numbers, tokens = fill(home, bundles, args.clients)
        for hostile in (False, True)[: 1 + args.hostile]:
            with served(home, args.loaded) as (url, process):
                clients = Clients(url, numbers, tokens, lines, seconds)
                memory = clients.run(args.clients, process, hostile)
            runs.append((clients, *means(memory, seconds)))
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"{args.clients} clients, {len(numbers)} plugins and the base, {args.minutes:g} minutes\n")
    sys.exit(0 if report(runs, seconds) else 1)


def report(runs: list[tuple[Clients, float, float]], seconds: float) -> bool:
    """Print the table, one row a run, the second one beside a hostile client; whether all is as it should be."""
    print("| | answers | a second | errors | p50 | p95 | p99 | memory after warm-up | at the end | growth |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    tops = []
    for name, (clients, early, late) in zip(("alone", "beside a hostile client"), runs, strict=False):
        cuts = statistics.quantiles(clients.taken, n=100)
        tops.append((cuts[49], cuts[98]))
        print(
            f"| {name} | {len(clients.taken)} | {len(clients.taken) / seconds:.1f} | {sum(clients.errors.values())} | "
            f"{cuts[49]:.2f} s | {cuts[94]:.2f} s | {cuts[98]:.2f} s | "
            f"{early:.0f} MB | {late:.0f} MB | {100 * (late / early - 1):+.1f} % |"
        )
        for fault, count in clients.errors.most_common(5):
            print(f"{count} times: {fault}")
    if len(runs) > 1:
        (p50, p99), (p50_beside, p99_beside) = tops
        print(f"\np50 {p50_beside / p50:.2f} times as long beside it, p99 {p99_beside / p99:.2f} times (at most {WORSE:g})")
        print(f"the hostile client: {dict(runs[1][0].hostile)}")
        if p99_beside > WORSE * p99:
            return False
    _, early, late = runs[0]
    return late <= early * (1 + FLAT / 100) and not any(clients.errors for clients, *_ in runs)


if __name__ == "__main__":
    main()
