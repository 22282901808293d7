"""TER, approximate randomisation, terms, copied words, and the report of files: sacrebleu's own figures where it has them."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.terminology import Term, read_terms
from engine.errors import InputError
from engine.evaluation import Report, evaluate
from engine.evaluation.evaluate import ExtraMetrics
from engine.evaluation.terminology import copied_share, term_counts
from tests.properties import few

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
EN = [line for line in (SAMPLES / "elizabethan-en/elizabethan-en.txt").read_text(encoding="utf-8").splitlines() if line.strip()][
    :60
]


def worn(share: float, seed: int) -> list[str]:
    pick = random.Random(seed)
    return [" ".join(word for word in line.split() if pick.random() > share) for line in EN]


def test_two_systems_that_differ_in_the_terms_of_one_line_differ_by_chance() -> None:
    terms = [Term(word, "en") for word in EN[0].rstrip(".").split()[:3]]
    systems = {"vanilla": ["", *EN[1:20]], "customized": EN[:20]}
    further = ExtraMetrics(trials=200, terms=terms)
    report = evaluate(systems, EN[:20], language="en", baseline="vanilla", samples=100, further=further)
    assert report["customized"].terms.score > report["vanilla"].terms.score
    assert report["customized"].terms.p_ar == 1


def test_ter_and_randomisation_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    systems = {"vanilla": worn(0.22, 1), "customized": worn(0.2, 2)}
    report = evaluate(systems, EN, language="en", baseline="vanilla", samples=100, seed=7, further=ExtraMetrics(True, 500))
    for name, lines in {**systems, "reference": EN}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "reference", "-i", "vanilla", "customized", "-m", "bleu", "chrf", "ter"]
    command += ["--paired-ar", "--paired-ar-n", "500", "-w", "4", "-f", "text"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "SACREBLEU_SEED": "7"}, capture_output=True, check=True, text=True
    )
    scores = report["customized"].figures()
    expected = [float(p) for p in re.findall(r"\(p = ([\d.]+)\)", done.stdout)]
    assert [scores[name].p_ar for name in ("bleu", "chrf", "ter")] == pytest.approx(expected, abs=1e-4)
    assert report["vanilla"].ter.score > scores["ter"].score > 0
    assert f"{scores['ter'].score:.2f}" in done.stdout
    assert "case:lc|tok:tercom" in report.signatures["TER"]
    assert Report.from_mapping(json.loads(json.dumps(report.to_mapping()))) == report
    assert " / " in report.table()
    assert "approximate randomisation" in report.table()


def test_the_same_system_is_no_better_by_randomisation_either() -> None:
    lines = worn(0.2, 3)
    report = evaluate({"a": lines, "b": list(lines)}, EN, language="en", baseline="a", samples=100, further=ExtraMetrics(trials=50))
    assert [figure.p_ar for figure in report["b"].figures().values()] == [1.0, 1.0]
    assert report["a"].bleu.p_ar is None


def test_terms_called_for_are_counted_as_words() -> None:
    terms = [Term("thee", "en", "dich", "de"), Term("art", "en")]
    sources = ["Ich sehe dich.", "Du bist hier.", "Dichter."]
    references = ["I see thee.", "Thou art here.", "Poets."]
    lines = ["I see Thee.", "You are a party here.", "Thee."]
    assert term_counts(terms, lines, sources, references) == [(1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]
    # Without references a term is called for by its source alone, and one without a source cannot be.
    assert term_counts(terms, lines, sources, None) == [(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)]
    report = evaluate({"a": lines}, references, language="en", samples=100, further=ExtraMetrics(terms=terms, sources=sources))
    assert report["a"].terms.score == 50
    assert "terms %" in report.table()


def test_terms_of_a_script_without_spaces_stand_anywhere() -> None:
    assert term_counts([Term("呐喊", "zh")], ["他的呐喊集。", "没有。"], None, ["《呐喊》", "呐喊"]) == [(1.0, 1.0), (0.0, 1.0)]


def test_a_glossary_is_read_and_its_faults_have_a_line(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("# ours\nHaus\tdwelling\n\nthee\n", encoding="utf-8")
    terms = read_terms(file, "en", "de")
    assert [(term.source, term.target) for term in terms] == [("Haus", "dwelling"), ("", "thee")]
    file.write_text("a\tb\tc\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"terms.tsv, line 1: .* 3 columns"):
        read_terms(file, "en", "de")
    file.write_text("#\n", encoding="utf-8")
    with pytest.raises(InputError, match="no terms"):
        read_terms(file, "en", "de")


def test_copied_words_and_length() -> None:
    sources = ["Der Computer startet.", "Guten Tag."]
    assert copied_share(["The Computer starts 7.", "Guten Tag."], sources, "en", "de") == pytest.approx(60)
    report = evaluate(
        {"half": ["a b", "a"], "all": ["a b c", "a b c"]},
        ["a b c", "a b c"], language="en", samples=100, further=ExtraMetrics(sources=["x", "y"]),
    )  # fmt: skip
    assert report["half"].length == pytest.approx(0.5)
    assert report["all"].length == 1
    assert report["all"].copied == 0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.integers(1, 99))
@few
def test_randomisation_is_a_share_and_does_not_care_who_is_first(hits: list[tuple[bool, bool]], seed: int) -> None:
    import numpy as np

    from engine.evaluation.bootstrap import randomised

    first, second = (np.array([(pair[position], 1.0) for pair in hits], dtype=float) for position in (0, 1))

    def score(total: np.ndarray) -> float:
        return float(total[0] / total[1])

    p = randomised(first, second, score, 200, seed)
    assert 0 < p <= 1
    assert p == randomised(second, first, score, 200, seed)


def test_files_are_reported_as_a_page_and_as_data(tmp_path: Path, tailormt: object) -> None:
    for name, lines in {"ref.txt": EN, "a.txt": worn(0.4, 1), "b.txt": worn(0.1, 2), "src.txt": EN}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "terms.txt").write_text("thou\n", encoding="utf-8")
    given_files = ["vanilla=" + str(tmp_path / "a.txt"), "customized=" + str(tmp_path / "b.txt")]
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    ran = tailormt(  # type: ignore[operator]
        "evaluate", *given_files, "--reference", tmp_path / "ref.txt", "--sources", tmp_path / "src.txt", "--terms",
        tmp_path / "terms.txt", "--target", "en", "-o", page, "-o", data,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    values = json.loads(data.read_text(encoding="utf-8"))
    report = Report.from_mapping(values["figures"]["text"])
    assert report["customized"].ter.p_ar < 0.05
    assert report["customized"].terms.score > report["vanilla"].terms.score
    assert len(values["lines"]) == len(EN)
    text = page.read_text(encoding="utf-8")
    assert "TER" in text
    assert "Terminology used" in text
    assert "http" not in re.sub(r"http://www\.w3\.org\S*", "", text)
