"""Memory and time of reading a large TMX, as translators' tools export them: `tailormt corpus import` in a process of its own.

    python bench/large_import.py                                   100,000 segments, 300 MB
    python bench/large_import.py --segments 20000 --megabytes 60
    python bench/large_import.py --file mine.tmx --source en --target zh

The segments are real clauses of the bundled samples put together anew, in both languages, with inline tags; attributes,
properties and notes fill the file to its size, as they do in exports. The table has the process's largest resident memory,
its CPU and clock time, and the times at which it said how far it was.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "assets" / "samples"
TEXTS = {"en": ("general-en/general-en.txt", "elizabethan-en/elizabethan-en.txt"),
         "zh": ("general-zh/general-zh.txt", "literary-zh/literary-zh.txt")}  # fmt: skip
LIMIT = 500  # MB
OPEN, CLOSE = '<bpt i="1" type="bold">&lt;b&gt;</bpt>', '<ept i="1">&lt;/b&gt;</ept>'


def clauses(language: str) -> list[str]:
    """Short pieces of the samples of a language."""
    cut = r"[，。！？；：、“”‘’（）—…\s]+" if language == "zh" else r"[,.;:!?()\"“”]+"
    least, most = (3, 24) if language == "zh" else (12, 80)
    results = {
        piece.strip()
        for name in TEXTS[language]
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()
        for piece in re.split(cut, line)
        if least <= len(piece.strip()) <= most
    }
    return sorted(results)


def units(segments: int, size: int, seed: int = 1) -> Iterator[str]:
    """The translation units of a file of about `size` bytes."""
    drawn = random.Random(seed)
    english, chinese = clauses("en"), clauses("zh")
    for number in range(segments):
        source = ", ".join(drawn.sample(english, 2))
        target = f"{'，'.join(drawn.sample(chinese, 3))}。"
        unit = (
            f'<tu tuid="{number}" creationdate="20240101T000000Z" creationid="USER{number % 7}">'
            f'<tuv xml:lang="en-US"><seg>{OPEN}{escape(source)}{CLOSE}.</seg></tuv>'
            f'<tuv xml:lang="zh-CN"><seg>{OPEN}{target}{CLOSE}</seg></tuv>'
        )
        room = size // segments - len(unit.encode()) - 6
        notes = []
        while room > 40:
            text = ". ".join(drawn.sample(english, 4))[: room - 34]
            notes.append(f'<prop type="x-context">{escape(text)}</prop>')
            room -= len(notes[-1]) + 1
        head, sep, rest = unit.partition(">")
        yield head + sep + "\n".join(notes) + rest + "</tu>\n"


def make(path: Path, segments: int, size: int) -> None:
    """Write the file."""
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header ')
        file.write('creationtool="bench" segtype="sentence" adminlang="en" srclang="en-US" datatype="html" o-tmf="x" ')
        file.write('creationtoolversion="1"/><body>\n')
        for unit in units(segments, size):
            file.write(unit)
        file.write("</body></tmx>\n")


def measure(file: Path, source: str, target: str, folder: Path) -> tuple[int, float, float, float, list[str]]:
    """Exit code, largest resident memory in MB, clock and CPU seconds, and what was said on the way."""
    command = [sys.executable, "-m", "engine.cli.main", "corpus", "import", str(file), "--source", source, "--target", target]
    command += ["--workspace", str(folder / "workspace"), "--home", str(folder / "home")]
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    texts = [f"{time.perf_counter() - begin:6.1f} s  {line.rstrip()}" for line in process.stdout]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    taken = time.perf_counter() - begin
    return process.returncode, usage.ru_maxrss * 1024 / 1e6, taken, usage.ru_utime + usage.ru_stime, texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="a file of your own instead of one that is made")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailormt-import-") as temporary:
        folder = Path(temporary)
        file = args.file or folder / "large.tmx"
        if not args.file:
            make(file, args.segments, args.megabytes * 1_000_000)
        code, memory, wall, cpu, text = measure(file, args.source, args.target, folder)
        size = file.stat().st_size / 1e6
    print("\n".join(text if len(text) < 16 else [*text[:6], f"        … {len(text) - 14} lines", *text[-8:]]))
    print(f"\n{platform.machine()}, {os.cpu_count()} CPUs\n| file | exit code | largest memory | clock | CPU | lines of progress |")
    print("|---|---|---|---|---|---|")
    print(f"| {size:.0f} MB | {code} | {memory:.0f} MB | {wall:.0f} s | {cpu:.0f} s | {len(text)} |")
    sys.exit(code or (1 if memory > LIMIT else 0))


if __name__ == "__main__":
    main()
