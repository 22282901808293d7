"""How fast the studio is with a large project: its import, the first page, and each page with 40,000 sentences and 200,000
phrases.

    python bench/studio_pages.py                              a temporary home, made first (some minutes)
    python bench/studio_pages.py --home /tmp/large            the home is kept, and used again by the next run
    python bench/studio_pages.py --text novel.txt --sentences 100000

The sentences are real clauses of the bundled Chinese samples (or of `--text`, one sentence a line) put together anew, two at a
time; the phrases are their runs of characters, the most frequent first. Pages are opened by a click on their link, as a person
opens them, in headless Chromium, and timed by the browser's own clock, from the click to the frame that shows what the page has
of the project. Each page is opened once unmeasured, so that its files are read, then `--rounds` times; the table has the medians,
and the CPU time that browser and studio took, which says more where other work shares the cores. Ends with 1 where something
takes longer than its limit, or a page does not come at all.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import platform
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "assets" / "models" / "en-zh"
TEXTS = ("general-zh/general-zh.txt", "literary-zh/literary-zh.txt", "demo.zh.txt")
HEAVY = ("torch", "transformers", "stanza", "faiss", "plotly", "lingua", "sacrebleu", "sklearn")
STEP = "step to"
LIMITS = {"import": 3.0, "first page": 2.0, STEP: 0.3}  # seconds, on two idle cores
# What stands on a page when it shows the project.
THERE = {
    "samples": ".tm-main table.tm tbody tr td",
    "phrases": "table.tm-phrases tbody tr",
    "proportions": ".tm-main .tm-plots .main-svg, .tm-main .tm-word-rows, .tm-main .tm-empty",
    "train": ".tm-main .tm-methods",
    "compare": "table.tm-compare tbody tr",
    "rate": "table.tm-ratings, table.tm-raters",
    "plugins": ".tm-main .tm-plugin",
    "translate": ".tm-main .tm-result",
}

# Notes the milliseconds between the next click and the frame after the one that both of these stand in, by the browser's clock.
WATCH = """
([link, content]) => {
  window.shown = null;
  const there = () => document.querySelector(link) && document.querySelector(content)?.checkVisibility();
  document.addEventListener('click', (event) => {
    const look = () => {
      if (!there()) requestAnimationFrame(look);
      else requestAnimationFrame(() => { window.shown = performance.now() - event.timeStamp; });
    };
    requestAnimationFrame(look);
  }, {once: true, capture: true});
}
"""


# -- the project


def composed(texts: Sequence[Path], count: int, seed: int) -> list[str]:
    """That many different sentences, each of two clauses of the texts."""
    clauses = [
        clause
        for path in texts
        for line in path.read_text(encoding="utf-8").splitlines()
        for clause in re.split(r"[，。！？；：、“”‘’（）—…\s]+", line)
        if 3 <= len(clause) <= 24
    ]
    clauses = list(dict.fromkeys(clauses))
    drawn = random.Random(seed)
    sentences: dict[str, None] = {}
    while len(sentences) < count:
        first, second = drawn.sample(clauses, 2)
        sentences[f"{first}，{second}{drawn.choice('。。。！？')}"] = None
    return list(sentences)


def runs_of(sentences: Sequence[str], count: int) -> list[tuple[str, int, int]]:
    """(text, times, a sentence that holds it) of the most frequent runs of 2 to 8 characters."""
    times: collections.Counter[str] = collections.Counter()
    first: dict[str, int] = {}
    for index, sentence in enumerate(sentences):
        for length in range(2, 9):
            for start in range(len(sentence) - length):
                run = sentence[start : start + length]
                times[run] += 1
                first.setdefault(run, index)
    inner = ((run, n) for run, n in times.most_common() if not set(run[0] + run[-1]) & set("，。！？"))
    return [(run, n, first[run]) for run, n in itertools.islice(inner, count)]


def make_home(home: Path, texts: Sequence[Path], sentences: int, phrases: int) -> int:
    """A home with the project in it, as if its samples had been read and used; returns the project's number."""
    from engine.base import LanguagePair
    from engine.core.settings import Settings
    from engine.corpora import import_corpus
    from engine.phrases import Phrase, PhraseSet
    from engine.phrases.table import open_table
    from engine.phrases.tree_store import TREES_FILE, writing_trees
    from engine.phrases.types import Tree
    from engine.store import Store
    from engine.workflows.explore.domain_proportions import explore_samples

    settings = Settings(home=str(home), device="cpu", threads=1)
    store = Store(settings.store_url)
    project = store.projects.create("Large", "en", "zh", str(BASE))
    folder = home / "projects" / str(project.id)
    (folder / "samples").mkdir(parents=True)
    lines = composed(texts, sentences, 1)
    files = []
    for name, part in (("one.txt", lines[: sentences // 2]), ("two.txt", lines[sentences // 2 :])):
        files.append(folder / "samples" / name)
        files[-1].write_text("\n".join(part) + "\n", encoding="utf-8")
    said("reading the samples")
    corpus = import_corpus(files, "zh")
    corpus.save(folder)
    selected = [segment.text for segment in corpus.segments]
    said(f"{len(selected):,} sentences kept; finding runs of characters")
    with writing_trees(folder / TREES_FILE) as trees:
        for text in selected:
            words = tuple(Tree("X", text[start : start + 2]) for start in range(0, len(text), 2))
            trees(text, Tree("S", text, words))
    results = [
        Phrase(text=run, length=max(1, len(run) * 2 // 3), count=times, label="statistical", example=example)
        for run, times, example in runs_of(selected, phrases)
    ]
    PhraseSet(results, "Runs of characters, for a bench.").save(folder / "phrases.jsonl")
    said(f"{len(results):,} phrases; counting them")
    open_table(folder, "zh", settings.assets_dir)
    report = json.loads((folder / "import_report.json").read_text(encoding="utf-8"))
    row = store.corpora.create(project.id, "one.txt, two.txt", folder=str(folder))
    store.corpora.update(row.id, state="ready", kept=report["kept"], skipped=report["skipped"], report=report)
    store.phrase_sets.create(row.id, str(folder / "phrases.jsonl"), "Runs of characters.", len(results))
    said("fitting proportions")
    pair = LanguagePair.load(str(BASE), "en", "zh", settings=settings)
    explore_samples(corpus.segments, pair, folder, settings.assets_dir, words=800)
    used(store, project.id, folder, selected)
    return project.id


def used(store: Any, project: int, folder: Path, sentences: Sequence[str]) -> None:
    """Ten runs with their curves and plugins, comparisons of 2,000 sentences, a rating round."""
    from engine.store.comparisons import ComparisonLineRow
    from engine.workflows.human_rating import RoundPlan, new_round, texts_of

    said("runs, comparisons, a round")
    for number in range(10):
        job = store.jobs.enqueue("customize", {"method": "memory_adapter", "budget": "quick"}, project_id=project)
        claimed = store.jobs.claim("bench:1")
        curve = folder / "runs" / str(job.id) / "training" / "metrics.jsonl"
        curve.parent.mkdir(parents=True)
        rows = [{"step": n, "loss": 5 / (n + 1) ** 0.3, "lr": 1e-3, "tokens_per_second": 900.0} for n in range(1, 2000)]
        curve.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
        store.jobs.finish(claimed.id, claimed.attempt, {"kept": len(sentences)})
        metrics = {"style": {"bleu": {"score": 20.0 + number}}}
        store.plugins.create(project, f"Large {number + 1}", method="memory_adapter", path=str(folder / "gone.zip"),
                             metrics=metrics, job_id=job.id)  # fmt: skip
    systems = [{"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
               {"name": "Large 1", "plugin_id": 1, "method": "memory_adapter", "strength": 1.0}]  # fmt: skip
    for _ in range(3):
        lines = [(f"Sentence {n} of a large file.", None) for n in range(2000)]
        sheet = store.sheets.create(project, "large.txt", lines, systems, file="large.txt")
        done = [
            ComparisonLineRow(n, source, None, [sentences[n], sentences[n + 1]], [None, None], (n % 100) / 100, None)
            for n, (source, _) in enumerate(lines)
        ]
        store.sheets.fill(sheet.comparison_id, sheet.revision, done)
    raters = ["Ann", "Bo", "Cy"]
    new_round(store, project, texts_of(store, sheet.comparison_id), RoundPlan("Large 1", "vanilla", raters=raters, sentences=500))


def said(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


# -- measuring


def import_seconds(times: int) -> tuple[float, float, list[str]]:
    """The medians of the seconds and of the CPU seconds of `import studio.app` in a process of its own, and which heavy
    modules came along."""
    code = (
        "import sys, time; begin = time.perf_counter(); import studio.app; "
        f"print(time.perf_counter() - begin, time.process_time(), *[name for name in {HEAVY} if name in sys.modules])"
    )
    results: list[tuple[float, float]] = []
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        wall, cpu, *heavy = done.stdout.split()
        results.append((float(wall), float(cpu)))
    return statistics.median(seconds for seconds, _ in results), statistics.median(seconds for _, seconds in results), heavy


def cpu_seconds() -> tuple[float, float]:
    """CPU seconds that the browser and the studio have taken so far, all their processes together."""
    import psutil

    browser = studio = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times, name = process.cpu_times(), process.name()
            if "chrom" in name:
                browser += times.user + times.system
            elif any("app.py" in argument for argument in process.cmdline()):
                studio += times.user + times.system
    return browser, studio


@contextlib.contextmanager
def served(home: Path) -> Iterator[tuple[str, float]]:
    """`python app.py` on a free port; its address and the seconds until it answered."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"TAILORMT_HOME": str(home), "TAILORMT_PORT": str(port), "TAILORMT_DEVICE": "cpu"}
    begin = time.perf_counter()
    with (home / "studio.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, str(ROOT / "app.py")], cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/v1/status", timeout=2):
                break
            if process.poll() is not None or time.perf_counter() - begin > 120:
                sys.exit(f"The studio did not start; see {home / 'studio.log'}.")
            time.sleep(0.02)
        yield url, time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait(timeout=20)


def first_page(page: Any, url: str) -> float:
    """Seconds from the address to the projects on the screen, by a browser that knows nothing of the studio yet."""
    begin = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_selector(".tm-home")
    return time.perf_counter() - begin


def switch(page: Any, slug: str) -> tuple[float, float, float]:
    """Seconds from the click to the frame that shows the page's content, and CPU seconds of the browser and of the studio for
    that.
    """
    page.evaluate(WATCH, [f'.tm-steps a[aria-current][href^="/{slug}?"]', THERE[slug]])
    before = cpu_seconds()
    page.locator(f'.tm-steps a[href^="/{slug}?"]').click(no_wait_after=True)
    page.wait_for_function("window.shown")
    browser, studio = (after - then for after, then in zip(cpu_seconds(), before, strict=True))
    return page.evaluate("window.shown") / 1000, browser, studio


def measure(home: Path, project: int, rounds: int) -> dict[str, Any]:
    """All figures, in seconds."""
    from playwright.sync_api import sync_playwright

    wall, cpu, heavy = import_seconds(5)
    result: dict[str, Any] = {"import": wall, "import cpu": cpu, "heavy": heavy, "pages": {}}
    browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with served(home) as (url, until), sync_playwright() as driver:
        result["server"] = until
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        result["first page"] = first_page(page, url)
        again = browser.new_page(viewport={"width": 1280, "height": 800})
        result["first page again"] = first_page(again, url)
        again.close()
        page.goto(f"{url}/translate?project={project}")
        page.wait_for_selector(THERE["translate"])
        times: dict[str, list[tuple[float, float, float]]] = {slug: [] for slug in THERE}
        for turn in range(rounds + 1):
            for slug in THERE:
                try:
                    taken = switch(page, slug)
                except Exception as error:
                    page.screenshot(path=str(home / f"{slug}.png"))
                    said(f"{slug}: {str(error).splitlines()[0]}; see {home / f'{slug}.png'}")
                    page.goto(f"{url}/{slug}?project={project}")
                    continue
                if turn:
                    times[slug].append(taken)
                else:
                    result["pages"][slug] = {"first": taken[0]}
                page.wait_for_timeout(700)  # the page's later events
        for slug, rows in times.items():
            if rows:
                middle = [statistics.median(column) for column in zip(*rows, strict=True)]
                result["pages"][slug] |= dict(zip(("switch", "browser", "studio"), middle, strict=True))
        browser.close()
    return result


def table(result: dict[str, Any]) -> str:
    rows = [
        (
            "import studio.app",
            f"{result['import']:.2f} s",
            f"CPU {result['import cpu']:.2f} s; loads {', '.join(result['heavy']) or 'no heavy module'}",
        ),
        ("start to the first answer", f"{result['server']:.2f} s", ""),
        ("first page, a new browser", f"{result['first page']:.2f} s", ""),
        ("first page again", f"{result['first page again']:.2f} s", ""),
    ]
    for slug, timings in result["pages"].items():
        browser, studio = (1000 * timings.get(name, float("nan")) for name in ("browser", "studio"))
        more = f"first {timings['first'] * 1000:.0f} ms; CPU of the browser {browser:.0f} ms, of the studio {studio:.0f} ms"
        rows.append((slug, f"{timings.get('switch', float('nan')) * 1000:.0f} ms", more))
    return "\n".join(["| what | time | |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])


def over_limits(result: dict[str, Any]) -> list[str]:
    """What took longer than it may, or did not come, in words."""
    taken = {name: result[name] for name in LIMITS if name != STEP}
    taken |= {f"{STEP} {slug}": result["pages"].get(slug, {}).get("switch", float("inf")) for slug in THERE}
    limits = {name: LIMITS.get(name, LIMITS[STEP]) for name in taken}
    return [f"{name}: {taken[name]:.3f} s, limit {limits[name]} s" for name in taken if taken[name] > limits[name]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="keep the home here, and use it again")
    parser.add_argument("--text", type=Path, nargs="*", help="texts instead of the bundled ones, a sentence a line")
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--phrases", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-make", action="store_true", help="make the home and stop")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    texts = args.text or [ROOT / "assets" / "samples" / name for name in TEXTS]
    with contextlib.ExitStack() as stack:
        home = args.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailormt-bench-")))
        home.mkdir(parents=True, exist_ok=True)
        mark = home / "project.json"
        if not mark.exists():
            mark.write_text(json.dumps(make_home(home, texts, args.sentences, args.phrases)), encoding="utf-8")
        if args.only_make:
            return 0
        result = measure(home, int(json.loads(mark.read_text(encoding="utf-8"))), args.rounds)
        from engine.core.settings import Settings
        from engine.jobs import stop_background_worker

        stop_background_worker(Settings(home=str(home), device="cpu"))
    print(
        json.dumps(result, indent=2)
        if args.json
        else f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs\n{table(result)}"
    )
    over = over_limits(result)
    for line in over:
        said(line)
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
