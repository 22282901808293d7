"""The bundled sample corpora: nine, with cards that tell the truth, clean but for the one that is dirty on purpose."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from engine.core.model_card import read_card_file
from engine.corpora import ImportReport, import_corpus
from engine.corpora.bundled import SampleCorpus, bundled_samples, named_files
from engine.corpora.near_duplicates import groups
from engine.corpora.report import excerpt
from engine.errors import CorpusError

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SAMPLES = {sample.name: sample for sample in bundled_samples(ASSETS)}
CLEAN = [sample for sample in SAMPLES.values() if sample.kind != "dirty"]


def report_of(sample: SampleCorpus) -> ImportReport:
    return import_corpus(sample.files, sample.target, source_language=sample.source or None).report


def test_six_corpora_two_of_them_styles_two_domains_one_bilingual_one_dirty_and_three_general_ones() -> None:
    kinds = ["style", "style", "domain", "domain", "bilingual", "dirty", "general", "general", "general"]
    assert [sample.kind for sample in SAMPLES.values()] == kinds
    assert {sample.target for sample in SAMPLES.values() if sample.kind != "general"} == {"en", "zh"}
    assert [sample.name for sample in SAMPLES.values() if sample.kind == "general"] == ["general-de", "general-en", "general-zh"]
    domains = [sample for sample in SAMPLES.values() if sample.kind == "domain"]
    assert len({sample.target for sample in domains}) == 1, "domains of one project share their target language"
    assert domains[0].goes_with == (domains[1].name,)


@pytest.mark.parametrize("one", SAMPLES.values(), ids=lambda one: one.name)
def test_cards_state_licence_language_origin_and_size(one: SampleCorpus) -> None:
    card = one.card
    assert card.license_line.startswith("Licence: CC0 1.0. Free for any use.")
    assert set(card.languages) == {one.target, one.source} - {""}
    assert card.summary
    assert "language model" in card.body
    for file in one.files:
        assert f"`{file.name}`" in card.body
    counts = {int(result.replace(",", "")) for result in re.findall(r"\d[\d,]*", card.body)}
    assert one.lines in counts or one.kind == "dirty"
    index = (ASSETS / "samples" / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"\| \[{one.name}\]\({one.name}/README.md\) \| {one.kind} \|[^|]*\| {one.lines} \|", index)


@pytest.mark.parametrize("one", CLEAN, ids=lambda one: one.name)
@pytest.mark.slow
def test_the_clean_ones_import_without_a_loss_or_a_remark(one: SampleCorpus) -> None:
    corpus = import_corpus(one.files, one.target, source_language=one.source or None)
    assert corpus.report.skipped == {}
    assert corpus.report.noticed == {}
    assert corpus.report.warnings == []
    assert 300 <= len(corpus) <= 500
    assert corpus.report.languages[one.target] > 0.98
    assert all((segment.source is not None) == bool(one.source) for segment in corpus.segments)


def test_the_pairs_of_the_bilingual_one_are_pairs() -> None:
    sample = SAMPLES["letters-de-en"]
    for source, target in (("de", "en"), ("en", "de")):
        corpus = import_corpus(sample.files, target, source_language=source)
        assert len(corpus) == sample.lines
        assert corpus.report.languages[target] > 0.98
        assert corpus.segments[0].text != corpus.segments[0].source
    german = [segment.text for segment in corpus.segments]
    english = [segment.source or "" for segment in corpus.segments]
    for a, b in zip(german, english, strict=True):
        assert 0.45 < len(a) / len(b) < 2.3, (a, b)
        assert re.findall(r"\d\d+", a.replace(".", "")) == re.findall(r"\d\d+", re.sub(r"1950s", "", b).replace(",", "")), a


def test_domains_keep_their_labels(tmp_path: Path) -> None:
    files = named_files(["sample:it-help-en", "sample:patient-info-en"], ASSETS)
    assert [Path(file).name for file in files] == ["it-help.txt", "patient-info.txt"]
    corpus = import_corpus(files, "en", domains=["IT", "medicine"])
    assert corpus.report.domains == {"IT": 365, "medicine": 327}
    corpus.save(tmp_path)
    again = type(corpus).load(tmp_path)
    assert again.report.domains == corpus.report.domains
    assert [segment.domain for segment in again.segments] == ["IT"] * 365 + ["medicine"] * 327
    texts = corpus.texts()
    assert groups(texts) == list(range(len(texts)))
    with pytest.raises(CorpusError, match="2 files, but 1 domain labels"):
        import_corpus(files, "en", domains=["IT"])


# What the card of the dirty corpus lists, as the import says it.
SKIPPED = {
    "duplicate": 10,
    "empty": 8,
    "garbled: a wrong encoding": 6,
    "wrong number of columns": 4,
    "no letters": 3,
    "only markup or a link": 3,
    "undecodable characters": 3,
    "too short": 1,
    "too long": 1,
}
NOTICED = {
    "half-width punctuation": 10,
    "another language": 9,
    "near-duplicate": 8,
    "invisible characters, removed": 6,
    "tags, links or placeholders": 4,
    "full-width letters or digits": 3,
    "tags, removed": 3,
}


def test_the_import_finds_every_fault_of_the_dirty_one() -> None:
    sample = SAMPLES["reviews-zh"]
    report = report_of(sample)
    assert report.skipped == SKIPPED
    assert report.noticed == NOTICED
    assert {file.name: file.encoding for file in report.files} == {"export.csv": "utf-8-sig", "notes.txt": "gb18030"}
    assert report.kept == 238
    assert set(report.languages) == {"zh", "en", "ja", "de", "ru"}
    for reason, count in (SKIPPED | NOTICED).items():
        assert any(re.search(rf"\|\s*{count}\b", row) and f": {reason} |" in row
                   for row in sample.card.body.splitlines() if row.startswith("|")), f"the card does not say {reason}"  # fmt: skip


def test_the_faults_are_where_the_import_says() -> None:
    path = next(file for file in SAMPLES["reviews-zh"].files if file.suffix == ".csv")
    raw = path.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in raw
    assert re.search(rb"[^\r]\n", raw), "some line ends are bare"
    lines = raw.decode("utf-8-sig", errors="replace").split("\n")
    file = report_of(SAMPLES["reviews-zh"]).files[0]
    for reason in ("garbled: a wrong encoding", "another language", "full-width letters or digits", "duplicate"):
        for number, text in file.examples[reason]:
            cell = next(csv.reader(io.StringIO(lines[number - 1])))[1]
            assert excerpt(cell)[:6] == text[:6], (reason, number)
    near = dict(file.examples["near-duplicate"])
    assert all(re.search(r"\(like line \d+\)$", text) for text in near.values())


def test_names_of_samples_and_plain_paths(tmp_path: Path) -> None:
    assert named_files(["a.txt", "/b/c.csv"], ASSETS) == ["a.txt", "/b/c.csv"]
    assert [Path(file).name for file in named_files(["x.txt", "sample:reviews-zh"], ASSETS)] == ["x.txt", "export.csv", "notes.txt"]
    with pytest.raises(CorpusError, match="Did you mean sample:literary-zh"):
        named_files(["sample:literary"], ASSETS)
    with pytest.raises(CorpusError, match="Available: none"):
        named_files(["sample:../../etc"], tmp_path)


def test_a_folder_of_ones_own_becomes_a_sample(tmp_path: Path) -> None:
    folder = tmp_path / "samples" / "mine"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Eins.\n\nZwei.\n", encoding="utf-8")
    assert bundled_samples(tmp_path) == []  # no card
    (folder / "README.md").write_text("---\nlanguage: de\nlicense: cc-by-nc-4.0\n---\n# Mine\n", encoding="utf-8")
    (sample,) = bundled_samples(tmp_path)
    assert (sample.name, sample.title, sample.target, sample.lines, sample.kind) == ("mine", "Mine", "de", 2, "style")
    assert sample.card.restricted
    assert read_card_file(folder).title == "Mine"


def test_demo_inputs_exist_in_every_shipped_language() -> None:
    for code in ("en", "zh", "de"):
        lines = (ASSETS / "samples" / f"demo.{code}.txt").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 12
        assert all(lines)
