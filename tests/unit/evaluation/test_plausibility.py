"""Which back-translations can be trusted, which sentences are trained on, and that all of them are remembered."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.core.step_cache import StepCache, content_hash
from engine.corpora import Segment
from engine.corpora.types import SentencePair
from engine.decoding import back_translation, resumable
from engine.decoding.back_translation import loses_thread, write_back
from engine.errors import Cancelled
from engine.evaluation.hallucination import hallucinated_stems
from engine.evaluation.plausibility import pair_of, plausibility, weigh
from engine.methods.data import Samples
from engine.workflows.customize.steps import make_pairs
from tests.bases import ROOT, SAMPLES, SENTENCES

LETTERS = [
    line.split("\t")[:2] for line in (SAMPLES / "letters-de-en" / "letters.tsv").read_text(encoding="utf-8").splitlines()[1:]
]
GENERAL = (SAMPLES / "general-de" / "general-de.txt").read_text(encoding="utf-8").splitlines()


# -- hallucinated words


def test_translations_by_people_have_no_hallucinated_words():
    assert hallucinated_stems([german for german, _ in LETTERS], [english for _, english in LETTERS], GENERAL) == {}


def test_a_word_that_is_written_without_a_reason_is_found_with_its_sentences():
    draw = random.Random(1)
    chosen = sorted(draw.sample(range(len(LETTERS)), 40))
    sources = [german for german, _ in LETTERS]
    for i in chosen:
        sources[i] += draw.choice([" Das ist ein Symptom.", " Die Symptome sind da."])
    assert hallucinated_stems(sources, [english for _, english in LETTERS], GENERAL) == {"sympto": chosen}


def test_a_word_that_the_targets_speak_of_is_none():
    """The same word, and the targets say why it is there."""
    both = [(german, english) for german, english in LETTERS]
    both[:40] = [(f"{german} Das ist ein Symptom.", f"{english} It is a symptom.") for german, english in both[:40]]
    assert hallucinated_stems([german for german, _ in both], [english for _, english in both], GENERAL) == {}
    assert hallucinated_stems(["Das ist ein Symptom."] * 40, ["No."] * 40, []) == {}, "nothing to compare with"


# -- plausibility


@given(st.floats(-20, 20), st.floats(0, 1), st.floats(0, 5), st.floats(0, 1))
def test_plausibility_grows_with_what_speaks_for_a_source(support, agreement, more, nearer):
    value = plausibility(support, agreement)
    assert 0 <= plausibility(support, agreement, hallucinated=True) <= value <= 1
    assert plausibility(support + more, min(1.0, agreement + nearer)) >= value
    assert 0 <= plausibility(support) <= 1


def test_a_missing_source_is_not_plausible(pair):
    result = weigh(pair, [*SENTENCES, ("", "雨停了。")], [], Progress())
    assert len(result) == len(SENTENCES) + 1
    assert result[-1].plausibility == 0
    assert all(0 < row.plausibility < 1 for row in result[:-1])


def test_rows_of_older_versions_have_the_plausibility_of_their_support():
    row = {"source": "The rain.", "target": "雨。", "domain": "", "synthetic": True, "support": 1.5}
    assert pair_of(row) == SentencePair("The rain.", "雨。", support=1.5, plausibility=plausibility(1.5))
    assert pair_of({**row, "synthetic": False, "support": None}).plausibility == 1


# -- back-translation


def test_a_translation_that_repeats_itself_or_does_not_end_is_told(pair):
    base = pair.backward
    texts = ["雨停了。", "雨停了。", "雨停了。", "雨停了。", ""]
    sources = ["The rain stopped.", "", "the rain and the rain and the rain and the rain", "letter door " * 90, ""]
    assert loses_thread(base, texts, sources) == [False, True, True, True, False]


def test_every_text_gets_its_translation_in_order(pair):
    texts = [chinese for _, chinese in SENTENCES]
    assert write_back(pair.backward, texts, None, Progress()) == write_back(pair.backward, texts, None, Progress())
    assert len(write_back(pair.backward, [*texts, ""], None, Progress())) == len(texts) + 1


def test_a_stop_before_the_last_clause_loses_no_finished_part(pair, tmp_path, monkeypatch):
    """Sentences that go clause by clause come last, and may take minutes."""
    texts, partial = [chinese for _, chinese in SENTENCES], tmp_path / "sources.partial.jsonl"
    monkeypatch.setattr(back_translation, "REPEATED", 0)  # every sentence goes clause by clause
    expected = write_back(pair.backward, texts, None, Progress())

    def stop(*_, **__):
        raise Cancelled

    with monkeypatch.context() as stopped:
        stopped.setattr(resumable, "back_translate", stop)
        with pytest.raises(Cancelled):
            write_back(pair.backward, texts, partial, Progress())
    assert partial.exists()
    monkeypatch.setattr("engine.decoding.translate.translate", stop)  # nothing is translated whole a second time
    assert write_back(pair.backward, texts, partial, Progress()) == expected
    assert list(tmp_path.iterdir()) == []


# -- the pairs


def segments():
    return [Segment(chinese) for _, chinese in SENTENCES[:6]], [Segment(chinese) for _, chinese in SENTENCES[6:]]


def test_all_sentences_are_remembered_whatever_share_is_trained_on(pair, tmp_path):
    train, valid = segments()
    train[0] = Segment(SENTENCES[0][1], SENTENCES[0][0])
    result = make_pairs(train, valid, pair, 0.4, StepCache(tmp_path), Progress(), assets=ROOT / "assets")
    assert [row.target for row in result["memory"]] == [row.text for row in train]
    assert 2 <= len(result["train"]) <= 3  # the real pair, and two of five but for what is implausible
    assert result["train"][0] == SentencePair(*SENTENCES[0], synthetic=False)
    left = [row.plausibility for row in result["memory"] if row not in result["train"]]
    assert max(left) <= min(row.plausibility for row in result["train"])
    samples = Samples(pair, train, valid, tmp_path, load_settings(), sentence_pairs=result)
    assert samples.pairs("memory") == result["memory"]
    samples.sentence_pairs = {"train": result["train"], "valid": []}
    assert samples.pairs("memory") == result["train"], "pairs that came without a memory are the memory"


def test_sources_are_weighed_once_a_share_of_them_is_chosen_and_not_before(pair, tmp_path):
    train, valid = segments()
    cache = StepCache(tmp_path)
    every = make_pairs(train, valid, pair, None, cache, Progress())
    assert len(every["train"]) == len(every["memory"]) == len(train)
    assert {row.support for row in every["memory"]} == {None}
    assert {row.plausibility for row in every["memory"]} == {1.0}
    written = cache.used["pairs"]
    selected = make_pairs(train, valid, pair, 0.5, cache, Progress())
    assert cache.used["pairs"] == written
    assert len(selected["train"]) <= len(train) / 2
    assert None not in {row.support for row in selected["memory"]}
    assert [row.source for row in selected["memory"]] == [row.source for row in every["memory"]]
    assert selected == make_pairs(train, valid, pair, 0.5, cache, Progress())
    assert len(make_pairs(train, valid, pair, None, cache, Progress())["train"]) == len(train)


def test_a_project_goes_on_with_the_pairs_of_an_older_version(pair, tmp_path):
    train, valid = segments()
    rows = [
        {"source": "old", "target": segment.text, "domain": "", "part": part, "synthetic": True, "support": 0.5}
        for part, samples in (("train", train), ("valid", valid))
        for segment in samples
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    cache = StepCache(tmp_path)
    before = content_hash("", pair.forward.fingerprint(), pair.backward.fingerprint(), True, 2)
    cache.mark_done("pairs written", before)
    cache.mark_done("pairs", before)
    result = make_pairs(train, valid, pair, 0.5, cache, Progress())
    assert {row.source for row in result["memory"]} == {"old"}
    assert cache.used["pairs"] == before
