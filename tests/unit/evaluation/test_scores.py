"""Scores, intervals and p-values: sacrebleu's own, and honest where two systems are the same."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import CorpusError, InputError, OptionError
from engine.evaluation import Report, evaluate, evaluate_files, read_lines, tokenizer

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"


def lines_of(name: str) -> list[str]:
    return [line for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines() if line.strip()][:120]


def worn(lines: list[str], share: float, seed: int = 1, *, unit: str = "word") -> list[str]:
    """The lines with a share of their words (or characters) lost: a translation of known worth."""
    pick = random.Random(seed)
    glue = " " if unit == "word" else ""
    parts = [line.split() if unit == "word" else list(line) for line in lines]
    return [glue.join(part for part in line if pick.random() > share) for line in parts]


EN = lines_of("elizabethan-en/elizabethan-en.txt")
ZH = lines_of("literary-zh/literary-zh.txt")


def test_a_better_system_is_better_for_certain() -> None:
    report = evaluate({"customized": worn(EN, 0.1), "vanilla": worn(EN, 0.3)}, EN, language="en", baseline="vanilla", samples=300)
    better, base = report["customized"], report["vanilla"]
    assert [system.name for system in report.systems] == ["vanilla", "customized"]
    for good, bad in ((better.bleu, base.bleu), (better.chrf, base.chrf)):
        assert good.score > bad.score
        assert good.p is not None
        assert good.p < 0.05
        assert bad.p is None
        for figure in (good, bad):
            assert 0 <= figure.low < figure.mean < figure.high <= 100
            assert figure.low < figure.score < figure.high


def test_figures_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    systems = {"vanilla": worn(ZH, 0.3, unit="char"), "customized": worn(ZH, 0.25, seed=2, unit="char")}
    report = evaluate(systems, ZH, language="zh", baseline="vanilla", samples=200, seed=7)
    for name, lines in {**systems, "reference": ZH}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "reference", "-i", "vanilla", "customized", "-tok", "zh"]
    command += ["-m", "bleu", "chrf", "--paired-bs", "--paired-bs-n", "200", "-w", "4", "-f", "text"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "SACREBLEU_SEED": "7"}, capture_output=True, check=True, text=True
    )
    # score (mean ± half of the interval), BLEU and chrF2 of one system after those of the other
    result = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", done.stdout)
    figures = [figure for system in report.systems for figure in (system.bleu, system.chrf)]
    assert len(result) == len(figures) == 4
    for numbers, figure in zip(result, figures, strict=True):
        ours = (figure.score, figure.mean, figure.high - figure.mean)
        assert [float(number) for number in numbers] == pytest.approx(ours, abs=1e-4)
    assert [float(p) for p in re.findall(r"\(p = ([\d.]+)\)", done.stdout)] == pytest.approx([figures[2].p, figures[3].p], abs=1e-4)
    assert report.signatures["BLEU"].startswith("nrefs:1|bs:200|seed:7|case:mixed|eff:no|tok:zh|smooth:exp|version:")
    assert report.signatures["chrF2"].startswith("nrefs:1|bs:200|seed:7|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_the_same_system_differs_by_chance() -> None:
    lines = worn(EN, 0.2)
    report = evaluate(
        {"a": lines, "b": list(lines), "c": [line + " " for line in lines]}, EN, language="en", baseline="a", samples=100
    )
    assert [system.bleu.p for system in report.systems] == [None, 1.0, 1.0]
    assert [system.chrf.p for system in report.systems] == [None, 1.0, 1.0]


def test_the_seed_makes_it_repeatable_and_leaves_the_environment() -> None:
    os.environ.pop("SACREBLEU_SEED", None)
    systems = {"a": worn(EN, 0.3), "b": worn(EN, 0.25, seed=5)}
    report = evaluate(systems, EN, language="en", baseline="a", samples=100, seed=3)
    assert evaluate(systems, EN, language="en", baseline="a", samples=100, seed=3) == report
    assert evaluate(systems, EN, language="en", baseline="a", samples=100, seed=4) != report
    assert "SACREBLEU_SEED" not in os.environ


def test_without_a_baseline_and_with_several_references() -> None:
    report = evaluate({"only": worn(EN, 0.2)}, [EN, worn(EN, 0.1, seed=9)], language="en", samples=100)
    assert report["only"].bleu.p is None
    assert report.signatures["BLEU"].startswith("nrefs:2")
    assert "baseline" not in report.table()


def test_empty_hypotheses_are_scored_and_counted() -> None:
    report = evaluate({"a": ["", *worn(EN, 0.2)[1:]], "b": [" "] * len(EN)}, EN, language="en", baseline="a", samples=100)
    assert (report["a"].empty, report["b"].empty) == (1, len(EN))
    assert report["b"].bleu.score == 0
    assert "empty lines" in report.table()


def test_table_and_mapping() -> None:
    report = evaluate({"vanilla": worn(EN, 0.4), "customized": worn(EN, 0.1)}, EN, language="en", baseline="vanilla", samples=100)
    assert Report.from_mapping(json.loads(json.dumps(report.to_mapping()))) == report
    with pytest.raises(InputError, match="damaged"):
        Report.from_mapping({"language": "en"})
    table = report.table()
    first, _, vanilla, customized, *rest = table.splitlines()
    assert first.split() == ["system", *["BLEU", "[95", "%", "interval]", "p"], *["chrF2", "[95", "%", "interval]", "p"], "length"]
    assert vanilla.startswith("vanilla (baseline)")
    assert f"{report['customized'].bleu.score:.1f} [" in customized
    assert re.search(r"\*\s+[\d.]+$", customized)
    assert rest[-2] == "BLEU: " + report.signatures["BLEU"]


def test_what_cannot_be_evaluated_is_said() -> None:
    with pytest.raises(InputError, match="system a has 120; system b has 119; the reference has 120"):
        evaluate({"a": EN, "b": EN[1:]}, EN, language="en")
    with pytest.raises(InputError, match="no lines to evaluate"):
        evaluate({"a": []}, [], language="en")
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate({}, EN, language="en")
    with pytest.raises(OptionError, match="'c' is not among the systems"):
        evaluate({"a": EN}, EN, language="en", baseline="c")
    with pytest.raises(OptionError, match="too few"):
        evaluate({"a": EN}, EN, language="en", samples=10)
    with pytest.raises(OptionError, match="seed"):
        evaluate({"a": EN}, EN, language="en", seed=0)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "ref.txt").write_bytes(("\r\n".join(ZH) + "\r\n").encode("utf-8-sig"))
    (tmp_path / "out.txt").write_text("\n".join(["", *ZH[1:]]), encoding="utf-8")
    assert read_lines(tmp_path / "ref.txt") == ZH
    report = evaluate_files({"mine": tmp_path / "out.txt"}, tmp_path / "ref.txt", language="zh", samples=100)
    assert report.lines == len(ZH)
    assert report["mine"].empty == 1
    (tmp_path / "short.txt").write_text("\n".join(ZH[2:]), encoding="utf-8")
    with pytest.raises(InputError, match=r"short.txt has 118; .*ref.txt has 120"):
        evaluate_files({"mine": tmp_path / "short.txt"}, tmp_path / "ref.txt", language="zh")
    with pytest.raises(CorpusError, match="does not exist"):
        evaluate_files({"mine": tmp_path / "none.txt"}, tmp_path / "ref.txt", language="zh")


def test_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [tokenizer(code) for code in ("en", "de", "zh", "zh-TW", "th")] == ["13a", "13a", "zh", "zh", "char"]
    import engine.evaluation.metrics as module

    monkeypatch.setattr(module, "_available", lambda name: True)
    assert (tokenizer("ja"), tokenizer("ko")) == ("ja-mecab", "ko-mecab")
    monkeypatch.setattr(module, "_available", lambda name: False)
    assert (tokenizer("ja"), tokenizer("ko")) == ("char", "char")
    report = evaluate({"a": ["明日は晴れる。"]}, ["明日も晴れる。"], language="ja", samples=100)
    assert "tok:char" in report.signatures["BLEU"]
