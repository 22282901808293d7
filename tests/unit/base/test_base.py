"""The frozen base: what it is told by its folder, how it translates, and that nothing changes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.base import BaseModel, LanguagePair, read_card
from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import Cancelled, MissingError, ModelError
from engine.plugins import Plugin
from tests.bases import SENTENCES, copy_base, make_base
from tests.conftest import BASES, ROOT
from tests.properties import few

SOURCES = [source for source, _ in SENTENCES]


def test_a_card_needs_no_torch(tiny: Path) -> None:
    card = read_card(tiny)
    assert (card["name"], card["languages"], card["decoder_layers"], card["d_model"]) == ("tiny-en-zh", ["en", "zh"], 2, 32)
    assert card["bytes"] == sum(file.stat().st_size for file in tiny.iterdir())
    code = f"import sys; from engine.base import read_card; read_card({str(tiny)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_it_translates_what_it_was_taught_both_ways(tiny: Path) -> None:
    pair = LanguagePair.load(tiny, "en", "zh", device="cpu")
    assert pair.backward.model is pair.forward.model, "a bilingual base is loaded once"
    right = sum(a == b for a, (_, b) in zip(translate(pair.forward, SOURCES), SENTENCES, strict=True))
    back = sum(a == b for a, (b, _) in zip(translate(pair.backward, [z for _, z in SENTENCES]), SENTENCES, strict=True))
    assert right >= 6
    assert back >= 6


def test_it_is_frozen_in_full_precision(base: BaseModel) -> None:
    assert not base.model.training
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in base.model.parameters())


@pytest.fixture(scope="module")
def alone(base: BaseModel) -> dict[str, str]:
    """The translation of each source in a batch of its own."""
    return {text: translate(base, [text], decoding=Decoding(beam=1, max_length_ratio=1.0))[0] for text in SOURCES}


@few
@given(st.lists(st.one_of(st.sampled_from(SOURCES), st.text(max_size=20)), max_size=6), st.integers(16, 200))
def test_one_translation_a_text_in_order(base: BaseModel, alone: dict[str, str], texts: list[str], batch: int) -> None:
    fast = Decoding(beam=1, batch_tokens=batch, max_length_ratio=1.0)
    translations = translate(base, texts, decoding=fast)
    assert len(translations) == len(texts)
    assert all(not translations[i] for i, text in enumerate(texts) if not text.strip())
    indices = [i for i, text in enumerate(texts) if text in alone]
    assert [translations[i] for i in indices] == [alone[texts[i]] for i in indices]


def test_a_plugin_leaves_no_trace(base: BaseModel, bundle: Path, tmp_path: Path) -> None:
    before, mark = translate(base, SOURCES), base.model.state_dict()
    copies = {key: value.clone() for key, value in mark.items()}
    plugin = Plugin.load(bundle, base, cache=tmp_path)
    assert translate(base, SOURCES, plugin) != before

    class Stop(Progress):
        def check(self) -> None:
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        translate(base, SOURCES, plugin, progress=Stop())
    with pytest.raises(RuntimeError, match="in the middle"), base.using(plugin):
        raise RuntimeError("in the middle")
    assert translate(base, SOURCES) == before
    assert all(torch.equal(value, copies[key]) for key, value in base.model.state_dict().items())
    assert not any(module._forward_hooks for module in base.model.modules())


def test_scores_are_log_probabilities(base: BaseModel) -> None:
    right = score(base, SENTENCES)
    wrong = score(base, [(source, SENTENCES[i - 1][1]) for i, (source, _) in enumerate(SENTENCES)])
    assert all(score < 0 and count > 1 for score, count in right)
    assert sum(score for score, _ in right) > sum(score for score, _ in wrong)
    assert score(base, SENTENCES[:1])[0][0] == pytest.approx(right[0][0], abs=1e-3)


def test_the_fingerprint_tells_weights_and_words_apart_but_not_places(base: BaseModel, tiny: Path, tmp_path: Path) -> None:
    copy = BaseModel.load(copy_base(tiny, tmp_path / "elsewhere"), "zh", "en", device="cpu")
    assert copy.fingerprint() == base.fingerprint(), "neither folder nor direction matters"
    other = BaseModel.load(make_base(tmp_path / "other", updates=1, half=True), "en", "zh", device="cpu")
    assert other.fingerprint() != base.fingerprint()


@pytest.mark.parametrize(("source", "target"), [("en", "fr"), ("fr", "zh"), ("zh", "zh")])
def test_languages_that_it_does_not_know(tiny: Path, source: str, target: str) -> None:
    with pytest.raises(ModelError, match=r"does not support the language fr\. It supports en, zh|two different languages"):
        BaseModel.load(tiny, source, target, device="cpu")


def test_a_base_of_one_direction_needs_another_for_the_way_back(tiny: Path, tmp_path: Path) -> None:
    one_way = make_base(tmp_path / "one-way", tags=(), updates=5)
    with pytest.raises(ModelError, match="from English to Chinese only"):
        BaseModel.load(one_way, "zh", "en", device="cpu")
    bare = Settings(home=str(tmp_path / "home"), assets=str(tmp_path / "assets"))
    with pytest.raises(ModelError, match="--backward"):
        LanguagePair.load(one_way, "en", "zh", device="cpu", settings=bare)
    assert LanguagePair.load(one_way, "en", "zh", device="cpu").backward.name == "en-zh", "one at hand serves"
    pair = LanguagePair.load(one_way, "en", "zh", backward=tiny, device="cpu")
    assert (pair.backward.name, pair.backward.source, pair.backward.target) == ("tiny-en-zh", "zh", "en")


def test_a_hub_id_is_not_fetched_unasked() -> None:
    with pytest.raises(MissingError, match=r"not on this machine\. With a connection, fetch it with `tailormt base add"):
        BaseModel.load("no-such-group/no-such-base", "en", "zh")


def test_the_bundled_base(tmp_path: Path) -> None:
    assert read_card(BASES / "en-zh")["languages"] == ["en", "zh"]
    base = BaseModel.load(BASES / "en-zh", "en", "zh", device="cpu")
    line = "It rained all night, and the street was empty in the morning."
    chinese = translate(base, [line])[0]
    assert sum("\u4e00" <= c <= "\u9fff" for c in chinese) >= 5
    english = translate(base.for_direction("zh", "en"), ["你为什么这么晚才回家？"])[0]
    assert sum(c.isascii() and c.isalpha() for c in english) >= 8
    assert base.decode(base.encode_target(["他说：“好！”，走了。"])) == ["他说：“好！”，走了。"], "full-width marks survive"
