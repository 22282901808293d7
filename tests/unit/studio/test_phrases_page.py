"""The phrases as their page shows them: the view that an address names, filters, the tree, the figures' data."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.settings import Settings
from engine.corpora import import_corpus
from engine.errors import InputError
from engine.phrases import PhraseOptions, Tree, extract_phrases
from engine.phrases.exclusions import Exclusions
from engine.store import ProjectRow, Store
from studio.api.downloads import lines
from studio.components.domain_figures import chance_of, corpus_card, held_out_line, sentence_view, word_card
from studio.components.phrase_map import PhraseMap
from studio.components.phrase_table import detail_card, example, histograms, phrase_table, times_as_often
from studio.components.plotly import domain_colours
from studio.components.tree_svg import flat, tree_svg, trimmed
from studio.i18n.translate import speaking, translate_message
from studio.pages.phrase_decisions import PhraseDecisions
from studio.pages.phrases import PhrasesPage
from studio.services.phrase_sentences import at_sentence, check_share, left_out
from studio.services.phrases import Phrases, PhraseView, own_sources, phrases_of
from studio.services.service import Service
from tests.conftest import SAMPLES


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    corpus = import_corpus([SAMPLES / "literary-zh" / "literary-zh.txt"], "zh")
    corpus.save(folder)
    result = extract_phrases(corpus.texts(), "zh", PhraseOptions(parser="statistical"))
    result.save(folder / "phrases.jsonl")
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectRow:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'a.db'}")
    return store.projects.create("Style", "en", "zh", "base")


@pytest.fixture
def found(workspace: Path, project: ProjectRow) -> Phrases:
    (workspace / "excluded_phrases.jsonl").unlink(missing_ok=True)
    phrases = phrases_of(workspace, project, Settings(), 4)
    assert phrases is not None
    return phrases


# -- views


@given(
    st.builds(
        PhraseView,
        words=st.text(max_size=9).map(str.strip),
        low=st.integers(0, 9),
        layer=st.integers(-1, 5),
        order=st.sampled_from(["typical", "times", "long", "short"]),
        show=st.sampled_from(["used", "out", "all"]),
        phrase=st.text(max_size=9),
        sentence=st.integers(-1, 99),
    )
)
def test_an_address_shows_what_was_looked_at(view: PhraseView) -> None:
    assert PhraseView.of(view.query()) == view


def test_an_odd_address_shows_what_it_can() -> None:
    view = PhraseView.of("order=evil&low=x&layer=2&show=all&none=1")
    assert view == PhraseView(layer=2, show="all")


# -- filters


def test_filters_fit_and_orders_order(found: Phrases) -> None:
    def rows(view: PhraseView) -> list:
        return [found.row(int(position)) for position in found.select(view)]

    assert len(rows(PhraseView())) == len(found)
    matches = rows(PhraseView(words="不", low=2, high=4, layer=1))
    assert matches
    assert all("不" in row.text and 2 <= row.length <= 4 and row.layer == 1 for row in matches)
    counts = [row.count for row in rows(PhraseView(order="times"))]
    assert counts == sorted(counts, reverse=True)
    lengths = [row.length for row in rows(PhraseView(order="long"))]
    assert lengths == sorted(lengths, reverse=True)
    first = rows(PhraseView(order="typical"))[0]
    assert first.length > 1, "single words come after"
    assert first.count >= 3
    assert first.ratio is not None
    assert first.ratio > 0
    assert rows(PhraseView(words="<none>")) == []


def test_leaving_out_is_shown_and_can_be_taken_back(workspace: Path, project: ProjectRow, found: Phrases) -> None:
    phrase = found.row(int(found.select(PhraseView(low=2, order="times"))[0])).text
    Exclusions.exclude(workspace, [phrase], sentences=True)
    after = phrases_of(workspace, project, Settings(), 4)
    assert after is not None
    gone = [after.row(int(position)) for position in after.select(PhraseView(show="out"))]
    assert phrase in [row.text for row in gone]
    assert all(phrase in row.text and row.layer == -1 for row in gone)
    assert len(after.select(PhraseView())) == len(found) - len(gone)
    assert left_out(workspace, "zh") == sum(
        phrase in json.loads(line)["text"] for line in (workspace / "corpus.jsonl").read_text("utf-8").splitlines()
    )
    Exclusions.undo(workspace)
    again = phrases_of(workspace, project, Settings(), 4)
    assert again is not None
    assert not again.excluded.any()


def test_a_common_word_does_not_take_its_sentences_along(workspace: Path) -> None:
    sentences = [json.loads(line) for line in (workspace / "corpus.jsonl").read_text("utf-8").splitlines()]
    with pytest.raises(InputError, match="Untick") as refused, speaking("zh"):
        check_share(["的"], sentences, "zh")
    assert str(refused.value).startswith("“的” appears in ")
    with speaking("zh"):
        assert "数量过多，无法排除。取消勾选" in translate_message(refused.value.message)
    assert check_share(["绝没有这样的话"], sentences, "zh") == 0


def test_back_translations_are_kept_and_searched(workspace: Path, project: ProjectRow, found: Phrases) -> None:
    text = found.table.texts[0]
    own_sources(workspace, {text: "The Rain <b>"})
    after = phrases_of(workspace, project, Settings(), 4)
    assert after is not None
    assert [after.row(int(position)).text for position in after.select(PhraseView(words="the rain"))] == [text]
    table = phrase_table([after.row(0)], "zh", "en")
    assert "The Rain &lt;b&gt;" in table
    assert "back-translation" not in phrase_table([found.row(1)], "zh", "en")
    (workspace / "phrase_sources.jsonl").unlink()


def test_the_file_has_every_row_of_the_view(found: Phrases) -> None:
    view = PhraseView(low=3)
    text = "".join(lines(found, view))
    assert text.startswith("\ufeffphrase,back_translation,kind,tokens,times,")
    assert len(text.splitlines()) == len(found.select(view)) + 1


def test_ratios_say_how_often(found: Phrases) -> None:
    assert times_as_often(found.row(int(found.select(PhraseView())[0]))).rstrip("+").endswith("×")
    row = replace(found.row(0), ratio=math.log2(50), own=1, general=0)
    assert times_as_often(row) == "≈\u00a050×", "an estimate, no lower bound: its interval reaches below"
    assert times_as_often(replace(row, general=3)) == "50×"


# -- histograms


def test_bars_count_every_phrase_and_say_so(found: Phrases) -> None:
    charts = histograms(found, PhraseView(), None)
    lengths = re.findall(r'aria-label="(\d+) tokens?: ([\d,]+) phrases', charts)
    assert sum(int(count.replace(",", "")) for _, count in lengths) == len(found)
    layers = re.findall(r'aria-label="Layer (\d+): ([\d,]+) phrases', charts)
    assert [int(layer) for layer, _ in layers] == [1, 2, 3, 4]
    assert sum(int(count.replace(",", "")) for _, count in layers) == len(found)
    assert 'aria-pressed="true"' not in charts
    assert histograms(found, PhraseView(low=2, high=2), None).count('aria-pressed="true"') == 1


# -- trees

TREE = Tree(
    "S",
    "he <b> did not stop.",
    (
        Tree("NP", "he", (Tree("PRP", "he"),)),
        Tree("VP", "<b> did not stop", (Tree("X", "<b>"), Tree("VBD", "did"), Tree("RB", "not"), Tree("VB", "stop"))),
        Tree("PUNCT", "."),
    ),
)


def test_a_tree_is_drawn_whole_and_escaped() -> None:
    keys = {"he": "he", "did not stop": "did not stop", "stop": "stop"}
    svg = tree_svg(TREE, "en", sentence=7, key_of=lambda text: keys.get(text, ""), chosen="stop", caption="1 token")
    words = [html.unescape(text) for text in re.findall(r'<text x="[\d.]+" y="\d+" lang="en">(.*?)</text>', svg)]
    assert words == ["he", "<b>", "did", "not", "stop", "."]
    assert "<b>" not in svg
    assert svg.count('role="treeitem"') == len(flat(TREE))
    assert svg.count('tabindex="0"') == 2, "the region, and one node: the arrows do the rest"
    assert 'data-key="stop"' in svg
    assert svg.count('aria-selected="true"') == 1
    assert "tm-under-phrase" in svg


def test_a_phrase_that_is_no_node_is_underlined() -> None:
    svg = tree_svg(TREE, "en", sentence=0, key_of=lambda text: "", chosen="did  NOT stop", caption="3 tokens")
    assert "tm-under-phrase" in svg
    assert 'aria-selected="true"' not in svg
    assert "tm-under-phrase" not in tree_svg(TREE, "en", sentence=0, key_of=lambda text: "", chosen="else")


@given(st.recursive(st.text("ab 。", min_size=1, max_size=5).map(lambda t: Tree("W", t)),
                    lambda inner: st.lists(inner, min_size=1, max_size=4).map(
                        lambda parts: Tree("X", " ".join(part.text for part in parts), tuple(parts))), max_leaves=20))  # fmt: skip
def test_any_tree_can_be_drawn(tree: Tree) -> None:
    nodes = flat(tree)
    assert [node.text for node in nodes if not node.children] == [leaf.text for leaf in tree.leaves()]
    assert all(nodes[child].up == index for index, node in enumerate(nodes) for child in node.children)
    assert tree_svg(tree, "zh", sentence=0, key_of=trimmed).startswith("<div")


def test_a_phrase_is_translated_back_on_demand(found: Phrases, monkeypatch: pytest.MonkeyPatch) -> None:
    row, requests = found.row(0), []
    button = f'data-back="{row.text}"'
    assert button in detail_card(row, [], "zh")
    assert button not in detail_card(replace(row, source="rain"), [], "zh")
    source: Any = SimpleNamespace(sentences=[], language="zh", domains=[], back_translate=requests.append)
    with gr.Blocks() as demo:
        page = PhrasesPage(demo, Service(Settings()))
        page.layout()
    monkeypatch.setattr(page, "opened", lambda request: (source, found))
    decisions, request = PhraseDecisions(page), SimpleNamespace()
    (update,) = decisions.back_translate_one(request, SimpleNamespace(phrase=row.text))  # type: ignore[arg-type]
    assert re.search(f"{button} disabled>Translating…", update[page.detail])
    assert list(decisions.back_translate_one(request, SimpleNamespace(phrase="<nothing>"))) == []  # type: ignore[arg-type]
    assert requests == [[row.text]]


def test_the_map_is_up_to_date_however_late_the_page_asks(project: ProjectRow, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    project = store.projects.create("Late", "en", "zh", "base")
    job = store.jobs.enqueue("phrase_map", {}, project_id=project.id)
    version = 1
    source: Any = SimpleNamespace(
        project=project, decoder_layers=4, domains=[], map_version=lambda: version, map_job=lambda: store.jobs.get(job.id)
    )
    with gr.Blocks():
        card = PhraseMap()
    values = card.values(source)
    assert not values[card.draw]["interactive"]
    assert card.draw in card.changes(source, values[card.state]), "progress is shown at each poll"
    store.jobs.cancel(job.id)
    later = card.changes(source, values[card.state])
    assert later[card.draw]["interactive"], "the page that missed the end of the job learns of it"
    assert list(card.changes(source, later[card.state])) == [card.state], "nothing is sent twice"
    version = 2  # drawn anew by somebody else
    assert "v=2" in card.changes(source, later[card.state])[card.points]


def test_marks_stand_where_the_phrase_does() -> None:
    assert example("He <did> not stopped. Stop.", "stop", "en") == ("He <did> not stopped. ", "Stop", ".")
    assert example("nothing", "stop", "en") == ("nothing", "", "")
    assert example("雨停了。", "停", "zh") == ("雨", "停", "了。")


def test_a_handy_sentence_holds_the_phrase() -> None:
    sentences = [{"text": "雨。"}, {"text": "雨还在下，他却一句话也不说，慢慢地走到门外去了。"}, {"text": "没有。"}]
    assert at_sentence(PhraseView(phrase="雨"), sentences, "zh").sentence == 1
    assert at_sentence(PhraseView(phrase="雨"), sentences, "zh", lambda text: text == "雨。").sentence == 0
    assert at_sentence(PhraseView(phrase="没有", sentence=0), sentences, "zh").sentence == 0
    assert at_sentence(PhraseView(), [], "zh").sentence == -1


# -- proportions

SIDE = {
    "sentence": "the dose",
    "side": "encoder",
    "domains": ["medical", "general"],
    "layers": ["1", "2", "output"],
    "words": [
        {"text": "the", "proportions": [0.4, 0.6], "shared": 0.97, "layers": [[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]},
        {"text": "<dose>", "proportions": [0.9, 0.1], "shared": 0.47, "layers": [[0.8, 0.2], [0.9, 0.1], [1.0, 0.0]]},
    ],
}


def test_a_sentence_is_shown_word_by_word(project: ProjectRow) -> None:
    result = {"source": "the <dose>", "translation": "剂量", "encoder": SIDE, "decoder": {**SIDE, "side": "decoder"}}
    view = sentence_view(result, project, {"encoder": 2})
    data = [json.loads(html.unescape(figure)) for figure in re.findall(r'data-figure="(.*?)"', view)]
    assert [figure["language"] for figure in data] == ["encoder", "decoder"]
    assert data[0]["words"] == ["the", "<dose>"]
    assert len(data[0]["shares"]) == 4
    assert data[0]["shares"][2] == [[0.4, 0.6], [0.9, 0.1]]
    assert data[0]["colours"] == domain_colours(["medical", "general"])
    assert "layer 2</output>" in view
    assert "<dose>" not in view


def test_a_fit_that_is_no_better_than_chance_says_so() -> None:
    def line(right: int, sentences: int, domains: int) -> str:
        held = {"sentences": sentences, "sentences_leaning_right": round(right / sentences, 4)}
        return held_out_line({"held_out": {"decoder": held}, "domains": ["x"] * domains})  # type: ignore[typeddict-item]

    assert line(4, 26, 4) == (
        "4 of 26 held-out sentences lean towards their own domain. That is not significantly more than by chance (6.5): "
        "these samples do not distinguish the domains."
    )
    assert line(22, 26, 4) == "22 of 26 held-out sentences lean towards their own domain."
    assert "by chance (13.0)" in line(16, 26, 2)
    assert "by chance" not in line(2100, 4000, 2)
    assert chance_of(2, 3, 0.5) == pytest.approx(0.5)
    assert chance_of(3, 3, 0.25) == pytest.approx(1 / 64)
    assert chance_of(0, 9, 0.5) == 1.0


def test_words_are_looked_up_across_domains() -> None:
    rows = [
        {"text": "dose", "count": 9, "in": [9, 0], "proportions": [0.9, 0.1], "shared": 0.47},
        {"text": "overdose", "count": 20, "in": [19, 1], "proportions": [0.9, 0.1], "shared": 0.47},
    ]
    lists = {"of": {"medical": rows, "general": []}, "shared": rows[1:]}
    corpus = {"domains": ["medical", "general"], "index": rows, "words": lists, "word_count": 29}
    proportions = {"corpus": {"decoder": corpus}}
    result = word_card(proportions, "decoder", "DOSE", "en")
    assert result.index('<b lang="en">dose') < result.index("overdose")
    assert "9 in medical" in result
    assert "None of the 29 words" in word_card(proportions, "decoder", "<rain>", "en")
    assert "Shared by all" in word_card(proportions, "decoder", "", "en")
    assert word_card(proportions, "encoder", "", "en") == ""


def test_the_corpus_is_shown_layer_by_layer() -> None:
    by = {"words": 3, "mean": [0.7, 0.3], "layers": [[0.6, 0.4], [0.8, 0.2]]}
    corpus = {
        "domains": ["a", "general"], "layers": ["1", "2"], "word_count": 6, "by_domain": {"a": by, "general": by},
        "histogram": {"bins": 10, "counts": [[[1] * 10, [2] * 10], [[3] * 10, [4] * 10]]},
    }  # fmt: skip
    card = corpus_card({"corpus": {"decoder": corpus}, "domains": ["a", "general"]}, "decoder", 0)
    bars, columns = (json.loads(html.unescape(figure)) for figure in re.findall(r'data-figure="(.*?)"', card))
    assert bars["shares"] == [[[0.7, 0.3]] * 2, [[0.6, 0.4]] * 2, [[0.8, 0.2]] * 2]
    assert columns["counts"][0] == [[2.0] * 10, [3.0] * 10]
    assert columns["counts"][2] == [[3] * 10, [4] * 10]
