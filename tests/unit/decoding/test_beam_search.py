"""Our beam search gives what transformers' own gives, sentence by sentence, and lets done sentences go."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.decoding.beam_search import beam_search
from tests.bases import EN_ZH, SAMPLES, tiny_base

SENTENCES = [
    line for line in (SAMPLES / "elizabethan-en/elizabethan-en.txt").read_text(encoding="utf-8").splitlines() if line.strip()
]


@pytest.fixture(scope="module")
def base() -> BaseModel:
    """A base that ships, in full precision."""
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def tiny() -> BaseModel:
    return tiny_base()


def both(base: BaseModel, texts: list[str], **settings: Any) -> tuple[list[str], list[str]]:
    """What transformers' search gives, and ours."""
    inputs = base.pad_batch(base.encode(texts))
    arguments = {
        "input_ids": inputs, "attention_mask": (inputs != base.pad).long(), "do_sample": False,
        "forced_bos_token_id": base.family.forced_bos(base.target), **settings,
    }  # fmt: skip
    with torch.inference_mode():
        theirs = base.model.generate(**arguments)
        ours = base.model.generate(**arguments, custom_generate=beam_search)
    return base.decode(theirs), base.decode(ours)


@pytest.mark.parametrize(
    "settings",
    [
        dict(num_beams=4, length_penalty=1.0, max_new_tokens=60),
        dict(num_beams=2, length_penalty=0.6, max_new_tokens=25),
        dict(num_beams=5, length_penalty=2.0, max_new_tokens=60, no_repeat_ngram_size=3),
        dict(num_beams=4, length_penalty=0.0, max_new_tokens=40, early_stopping=True),
        dict(num_beams=3, length_penalty=1.0, max_new_tokens=30, early_stopping="never"),
        dict(num_beams=4, length_penalty=1.0, max_new_tokens=60, num_return_sequences=3),
        dict(num_beams=2, length_penalty=1.0, max_new_tokens=60, num_return_sequences=2, early_stopping=True),
    ],
    ids=["usual", "short", "no repetition", "early", "never early", "three best", "all hypotheses"],
)
@pytest.mark.slow
def test_translations_are_those_of_transformers(base: BaseModel, settings: dict[str, Any]) -> None:
    theirs, ours = both(base, SENTENCES[:24], **settings)
    assert ours == theirs
    assert len(ours) == 24 * settings.get("num_return_sequences", 1)
    assert len(set(ours)) > 20


def test_a_base_without_an_end_in_sight_is_cut_like_theirs(tiny: BaseModel) -> None:
    theirs, ours = both(tiny, SENTENCES[:6], num_beams=4, max_new_tokens=12)
    assert ours == theirs


def test_words_that_must_not_be_written(tiny: BaseModel) -> None:
    free, _ = both(tiny, SENTENCES[:6], num_beams=4, max_new_tokens=12)
    last = tiny.encode_target(free[:1])[0][-2]
    end = tiny.model.config.eos_token_id
    for barred in ([[tiny.pad], [last], [end]], [[last], [last, end]]):  # singles, and a pair of tokens
        theirs, ours = both(tiny, SENTENCES[:6], num_beams=4, max_new_tokens=12, bad_words_ids=barred)
        assert ours == theirs
        assert ours != free


def test_sentences_that_are_done_leave_the_batch_and_the_others_stay_as_they_are(base: BaseModel) -> None:
    sizes: list[int] = []
    handle = base.model.get_decoder().register_forward_hook(
        lambda layer, args, kwargs, output: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    texts = ["Rain.", "No.", *SENTENCES[:2], " ".join(SENTENCES[2:4])]
    try:
        inputs = base.pad_batch(base.encode(texts))
        arguments: dict[str, Any] = dict(
            input_ids=inputs, attention_mask=(inputs != base.pad).long(), num_beams=4, max_new_tokens=80, do_sample=False,
            custom_generate=beam_search,
        )  # fmt: skip
        with torch.inference_mode():
            leaving = base.decode(base.model.generate(**arguments))
            seen, sizes[:] = list(sizes), []
            staying = base.decode(base.model.generate(**arguments, needs_fixed_batch=True))
    finally:
        handle.remove()
    assert leaving == staying
    assert seen[0] == len(texts), "the first step is done once a sentence"
    assert seen[1] == 4 * len(texts)
    assert seen[-1] < 4 * len(texts)
    assert set(sizes[1:]) == {4 * len(texts)}
