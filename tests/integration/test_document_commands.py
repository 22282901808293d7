"""`tailormt translate` with documents: formats kept, the base's own output, stopping and going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.decoding.translate import translate
from tests.bases import SENTENCES
from tests.conftest import ROOT, Ran
from tests.documents import docx

Run = Callable[..., Ran]
SOURCES = [source for source, _ in SENTENCES]


def direction(base: Path) -> tuple[Any, ...]:
    return ("--base", base, "--source", "en", "--target", "zh")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A Word document: a paragraph with a bold stretch, then a sentence a paragraph."""
    first = "<w:p><w:r><w:t>The rain </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>stopped</w:t></w:r><w:r><w:t>.</w:t></w:r></w:p>"
    return docx(first + "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in SOURCES[1:]), tmp_path / "report.docx")


def paragraphs(file: Path) -> list[str]:
    from lxml import etree

    root = etree.fromstring(zipfile.ZipFile(file).read("word/document.xml"))
    return ["".join(paragraph.itertext()) for paragraph in root.iter("{*}p")]


def test_a_document_says_what_the_base_says(tailormt: Run, tiny: Path, bundle: Path, base: Any, report: Path) -> None:
    expected = translate(base, SOURCES)
    ran = tailormt("translate", *direction(tiny), report)
    assert ran.code == 0, ran.err
    output = report.with_name("report.zh.docx")
    assert f"Wrote {output}: Word document, {len(SOURCES)} texts" in ran.out
    assert paragraphs(output) == expected
    again = report.with_name("zero.docx")
    assert tailormt("translate", *direction(tiny), "--plugin", bundle, "--strength", 0, report, "-o", again).code == 0
    assert again.read_bytes() == output.read_bytes(), "a plugin at strength 0 changes nothing"
    other = report.with_name("one.docx")
    assert tailormt("translate", *direction(tiny), "--plugin", bundle, report, "-o", other).code == 0
    assert other.read_bytes() != output.read_bytes()


def test_report_as_json_and_what_would_be_translated(tailormt: Run, tiny: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>The rain stopped. He said <b>nothing</b>.<p translate=no>Kept", encoding="utf-8")
    ran = tailormt("translate", *direction(tiny), "--json", "--quiet", page, "-o", tmp_path / "b.html")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert (data["title"], data["units"], data["kept"]) == ("HTML file", 1, {'translate="no"': 1})
    html = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert html.startswith("<p>")
    assert html.count("<b>") == html.count("</b>") == 1
    assert html.endswith("<p translate=no>Kept")


def test_a_text_file_is_lines_unless_called_a_document(tailormt: Run, tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("  The rain stopped.\n\nHe said nothing.\n", encoding="utf-8")
    lines = tailormt("translate", *direction(tiny), file).out
    assert len(lines.splitlines()) == 3
    assert tailormt("translate", *direction(tiny), "--document", file, "-o", tmp_path / "b.txt").code == 0
    text = (tmp_path / "b.txt").read_text(encoding="utf-8")
    assert text.splitlines() == ["  " + lines.splitlines()[0], "", lines.splitlines()[2]]


def test_what_cannot_be_is_said_before_a_model_is_loaded(tailormt: Run, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>Hello", encoding="utf-8")
    none = direction(tmp_path / "no-base")
    assert "ends in .html" in tailormt("translate", *none, page, "-o", tmp_path / "b.docx").sentence
    assert "is the document itself" in tailormt("translate", *none, page, "-o", page).sentence
    (tmp_path / "a.docx").write_bytes(b"no")
    assert "cannot be opened" in tailormt("translate", *none, tmp_path / "a.docx").sentence
    assert "standard input" in tailormt("translate", *none, "--document", "-").sentence


def test_a_stopped_translation_goes_on(tiny: Path, tmp_path: Path, home: Path) -> None:
    file, output = tmp_path / "a.md", tmp_path / "b.md"
    file.write_text("\n\n".join(f"The road number {k} is long and I waited." for k in range(400)), encoding="utf-8")
    line = [
        sys.executable, "-m", "engine.cli", "translate", *map(str, direction(tiny)), "--batch-tokens", "64",
        str(file), "-o", str(output),
    ]  # fmt: skip
    started = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, env={**os.environ, "TAILORMT_HOME": str(home)})
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not any(f.stat().st_size > 500 for f in home.glob("work/*.jsonl")):
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, text = started.communicate(timeout=300)
    assert started.returncode == 2, text.decode()
    assert b"run the same command again to continue" in text
    assert not output.exists()
    (partial,) = home.glob("work/*.jsonl")
    cached = partial.read_text(encoding="utf-8").splitlines()
    done = subprocess.run(line, cwd=ROOT, capture_output=True, check=True, env={**os.environ, "TAILORMT_HOME": str(home)})
    assert b"400 texts" in done.stdout
    assert len(cached) > 1
    assert not list(home.glob("work/*.jsonl"))
    assert len(output.read_text(encoding="utf-8").split("\n\n")) == 400
