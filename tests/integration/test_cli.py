"""The command line as a user's scripts see it: flags, streams, exit codes, stopping and going on."""

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

from tests.bases import SENTENCES
from tests.conftest import BASES, ROOT, SHORT, Ran

SOURCES = [source for source, _ in SENTENCES]
Run = Callable[..., Ran]


@pytest.fixture
def no_general_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is bundled: in a process of its own a tiny base spends most of its time on general text."""
    monkeypatch.setenv("TAILORMT_ASSETS", str(tmp_path / "no-assets"))


def direction(base: Path) -> tuple[Any, ...]:
    return ("--base", base, "--source", "en", "--target", "zh")


@pytest.fixture
def english(tmp_path: Path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("\n".join([SOURCES[0], "", "  ", *SOURCES[1:]]) + "\n", encoding="utf-8")
    return file


# -- the three commands whose flags do not change


@pytest.mark.smoke
@pytest.mark.usefixtures("no_general_text")
def test_customize_writes_a_bundle(command: Run, tiny: Path, sample: Path, tmp_path: Path, home: Path) -> None:
    output = tmp_path / "new" / "plugin.zip"
    line = ("customize", *direction(tiny), "--samples", sample, "--method", "memory_adapter", "--budget", "quick")
    ran = command(*line, *SHORT, "-o", output)
    assert ran.code == 0, ran.err
    assert "Plugin     " in ran.out
    assert "4 updates" in ran.out
    assert "Training" in ran.err
    assert "Traceback" not in ran.err
    assert [file.name for file in output.parent.iterdir()] == ["plugin.zip"]
    assert zipfile.ZipFile(output).testzip() is None
    assert not list((home / "work").iterdir()), "the unfinished work is removed when all is done"


def test_customize_json(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "plugin.zip"
    line = ("customize", *direction(tiny), "--samples", sample, "--budget", "quick", *SHORT, "-o", output)
    ran = tailormt(*line, "--json", "--quiet", "--name", "Mine", "--no-with-phrases")
    assert (ran.code, ran.err) == (0, "")
    summary = json.loads(ran.out)
    assert (summary["plugin"], summary["updates"], summary["sentences"]) == (str(output), 4, 60)
    with zipfile.ZipFile(output) as bundle:
        assert "phrases.jsonl" not in bundle.namelist()
        assert json.loads(bundle.read("adapter_config.json"))["name"] == "Mine"


@pytest.mark.smoke
def test_translate_a_line_for_a_line(command: Run, tiny: Path, bundle: Path, english: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    ran = command("translate", *direction(tiny), "--plugin", bundle, "--strength", "0.5", english, "-o", output)
    assert (ran.code, ran.out) == (0, "")
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == len(SOURCES) + 3
    assert (lines[1], lines[2], lines[-1]) == ("", "", "")
    assert all(lines[i] for i in (0, *range(3, len(lines) - 1)))


@pytest.mark.smoke
def test_methods_json(command: Run) -> None:
    ran = command("methods", "--json")
    assert ran.code == 0
    records = {record["name"]: record for record in json.loads(ran.out)}
    assert {"title", "summary", "needs_phrases", "needs_bilingual", "offers_strength"} <= set(records["memory_adapter"])


# -- translating


def test_order_pipes_and_strength_zero(tailormt: Run, tiny: Path, bundle: Path, english: Path, tmp_path: Path) -> None:
    plain = tailormt("translate", *direction(tiny), english)
    assert plain.code == 0
    expected = plain.out.split("\n")
    for position, source in zip([0, *range(3, len(SOURCES) + 2)], SOURCES, strict=True):
        file = tmp_path / "one.txt"
        file.write_text(source, encoding="utf-8")
        assert tailormt("translate", *direction(tiny), file).out == expected[position] + "\n"
    with_plugin = tailormt("translate", *direction(tiny), "--plugin", bundle, english)
    zero = tailormt("translate", *direction(tiny), "--plugin", bundle, "--strength", "0", english)
    assert with_plugin.out != plain.out
    assert zero.out == plain.out


def test_strength_zero_ignores_the_plugins_decoding(tailormt: Run, tiny: Path, bundle: Path, english: Path, tmp_path: Path) -> None:
    from tests.unit.plugins.test_bundle import with_config

    changed = with_config(bundle, tmp_path / "decoding.zip", decoding={"max_length_ratio": 0.5, "beam": 1})
    plain = tailormt("translate", *direction(tiny), english)
    assert tailormt("translate", *direction(tiny), "--plugin", changed, "--strength", "0", english).out == plain.out


def test_standard_input_and_a_poor_terminal(command: Run, tiny: Path) -> None:
    ran = command("translate", *direction(tiny), "-", input="\ufeffThe rain stopped.\r\n\r\n", PYTHONIOENCODING="ascii")
    assert (ran.code, ran.out) == (0, "雨停了。\n\n")


def test_compare_shows_both(tailormt: Run, tiny: Path, bundle: Path, english: Path) -> None:
    ran = tailormt("compare", *direction(tiny), "--plugin", bundle, english, "--json")
    rows = json.loads(ran.out)
    assert [row["source"] for row in rows if row["source"].strip()] == SOURCES
    assert any(row["vanilla"] != row["customized"] for row in rows)
    assert "sentences differ." in tailormt("compare", *direction(tiny), "--plugin", bundle, english).out


def test_evaluate(tailormt: Run, tmp_path: Path) -> None:
    reference = tmp_path / "reference.txt"
    reference.write_text("\n".join(target for _, target in SENTENCES) + "\n", encoding="utf-8")
    worse = tmp_path / "worse.txt"
    worse.write_text("雨。\n" * len(SENTENCES), encoding="utf-8")
    ran = tailormt("evaluate", f"best={reference}", f"worse={worse}", "--reference", reference, "--target", "zh")
    assert ran.code == 0
    assert "tok:zh" in ran.out
    ran = tailormt("evaluate", f"a={reference}", "--reference", reference, "--target", "zh", "--baseline", "b")
    assert "baseline" in ran.sentence


@pytest.mark.smoke
def test_verify(tailormt: Run, bundle: Path, tmp_path: Path) -> None:
    ran = tailormt("plugin", "verify", bundle)
    assert ran.code == 0
    assert "is whole: Style, memory_adapter, en to zh" in ran.out
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "spoilt.zip").write_bytes(data)
    assert "Get a new copy of the bundle" in tailormt("plugin", "verify", tmp_path / "spoilt.zip").sentence


@pytest.mark.smoke
def test_json_tells_of_errors_too(tailormt: Run, tmp_path: Path) -> None:
    ran = tailormt("plugin", "verify", tmp_path / "none.zip", "--json")
    assert ran.code == 2
    assert json.loads(ran.out) == {"error": ran.err.strip().removeprefix("tailormt: ")}


# -- steps over one workspace


def test_steps_over_one_workspace(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path) -> None:
    work, output = tmp_path / "work", tmp_path / "plugin.zip"
    job = (*direction(tiny), "--samples", sample, "--budget", "quick", *SHORT, "--workspace", work)
    ran = tailormt("corpus", "import", sample, "--source", "en", "--target", "zh", "--workspace", work)
    assert ran.code == 0
    assert "utf-8" in ran.out
    ran = tailormt("phrases", *job, "--json")
    assert json.loads(ran.out)["sentences"] == 60
    ran = tailormt("memory", *job, "--json")
    assert len(json.loads(ran.out)["memory"]) == 2
    ran = tailormt("train", *job, "--json")
    assert json.loads(ran.out)["updates"] == 4
    times = {file: file.stat().st_mtime_ns for file in work.rglob("*") if file.is_file() and file.name != ".lock"}
    ran = tailormt("customize", *job, "-o", output)
    assert ran.code == 0
    for name in ("corpus.jsonl", "phrases.jsonl", "method/phrase_pairs.jsonl", "method/memory.safetensors", "pairs.jsonl"):
        assert (work / name).stat().st_mtime_ns == times[work / name], f"{name} was made again"
    ran = tailormt("memory", *job, "--method-option", "phrases_per_layer=10", "--json")
    assert max(json.loads(ran.out)["memory"]) <= 10, "a changed setting does the step again"
    assert (work / "phrases.jsonl").stat().st_mtime_ns == times[work / "phrases.jsonl"]


# -- stopping and going on


def weights(path: Path) -> bytes:
    with zipfile.ZipFile(path) as bundle:
        return bundle.read("adapter_model.safetensors")


@pytest.mark.usefixtures("no_general_text")
def test_ctrl_c_then_the_same_command_goes_on(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path, home: Path) -> None:
    output = tmp_path / "out" / "plugin.zip"
    options = [*SHORT, "--training-option", "max_updates=150", "--training-option", "patience=0"]
    options += ["--training-option", "max_minutes=none", "--training-option", "checkpoint_every=1000"]
    options += ["--training-option", "validate_every=100"]
    line = ["customize", *direction(tiny), "--samples", sample, "--budget", "quick", *options, "-o", output]
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *map(str, line)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ),
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        logs = list(home.glob("work/*/training/metrics.jsonl"))
        if logs and '"lr"' in logs[0].read_text(encoding="utf-8"):
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.01)
    out, err = process.communicate(timeout=300)
    ran = Ran(process.returncode, out.decode(), err.decode())
    assert ran.sentence == "Stopped. What is finished is kept: run the same command again to continue."
    assert ran.out == ""
    assert not output.exists()
    assert not output.parent.exists() or not list(output.parent.iterdir())
    (state,) = home.glob("work/*/training/checkpoint/state.json")
    stopped_at = json.loads(state.read_text(encoding="utf-8"))["position"]["update"]
    assert 0 < stopped_at < 150

    assert tailormt(*line).code == 0
    resumed = weights(output)
    assert tailormt(*line, "--workspace", tmp_path / "undisturbed").code == 0
    assert weights(output) == resumed


# -- help and mistyped commands


@pytest.mark.smoke
def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from engine.cli.main import parser; parser().format_help(); "
        "print([m for m in ('torch', 'transformers', 'gradio', 'stanza', 'lingua', 'sqlalchemy', 'faiss') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("line", [(), ("custommize",), ("translate",), ("methods", "--jsno"), ("translate", "--strength", "x")])
@pytest.mark.smoke
def test_a_mistyped_command_is_explained(tailormt: Run, line: tuple[str, ...]) -> None:
    ran = tailormt(*line)
    assert ran.code == 2
    assert "usage: tailormt" in ran.err


# -- the real base


def test_the_bundled_base_is_found_by_its_languages(tailormt: Run, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("It rained all night.\n\nThe old teahouse by the river closed last year.\n", encoding="utf-8")
    ran = tailormt("translate", "--source", "en", "--target", "zh", file)
    lines = ran.out.split("\n")
    assert (ran.code, len(lines), lines[1]) == (0, 4, "")
    assert sum("\u4e00" <= c <= "\u9fff" for c in ran.out) > 8
    assert ran.out == tailormt("translate", *direction(BASES / "en-zh"), file).out
    text = tailormt("translate", "--source", "fr", "--target", "de", file).sentence
    assert "No installed base translates from French to German" in text
