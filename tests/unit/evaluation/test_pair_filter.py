"""Choosing the synthetic pairs that are worth learning from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.decoding.scoring import score
from engine.evaluation import pair_filter
from engine.evaluation.pair_filter import best_supported, support
from tests.bases import EN_ZH, SENTENCES


def test_true_translations_have_more_support_than_shuffled_ones():
    base = BaseModel.load(EN_ZH, "en", "zh", device="cpu")
    moved = [(SENTENCES[(i + 3) % len(SENTENCES)][0], zh) for i, (_, zh) in enumerate(SENTENCES)]
    matched, shuffled = support(base, SENTENCES, Progress()), support(base, moved, Progress())
    assert sum(matched) / len(matched) > sum(shuffled) / len(shuffled) + 0.2


def test_support_is_the_gain_in_likelihood_over_the_source_next_in_length(monkeypatch):
    base = BaseModel.load(EN_ZH, "en", "zh", device="cpu")
    monkeypatch.setattr(pair_filter, "SIZE", 4)
    pairs = sorted(SENTENCES, key=lambda pair: len(pair[0]))[:10]  # batches of four, four and two
    matched = score(base, pairs)
    shifted = score(base, [(pairs[(i + 1) % len(pairs)][0], target) for i, (_, target) in enumerate(pairs)])
    expected = [(mine - theirs) / count for (mine, count), (theirs, _) in zip(matched, shifted, strict=True)]
    assert support(base, pairs, Progress()) == pytest.approx(expected, abs=0.1)  # bfloat16 where it is fast


def test_a_single_pair_has_no_other_to_compare_with():
    assert support(None, [("a", "b")], Progress()) == [0.0]


def test_doubtful_pairs_are_left_out_as_long_as_half_of_the_share_remains():
    values = [None, 0.9, 0.8, 0.05, 0.04, 0.03, 0.02, 0.01, 0.01]
    assert best_supported(values, 0.5) == [True] * 5 + [False] * 4
    assert best_supported(values, 0.5, 0.1) == [True] * 3 + [False] * 6
    assert best_supported([0.05, 0.04, 0.03, 0.02], 0.5, 0.1) == [True, False, False, False]


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), max_size=40), st.floats(0.05, 1))
def test_the_best_share_is_kept_and_every_real_pair(values, share):
    selected = best_supported(values, share)
    assert all(good for value, good in zip(values, selected, strict=True) if value is None)
    chosen = [value for value, good in zip(values, selected, strict=True) if good and value is not None]
    left = [value for value, good in zip(values, selected, strict=True) if not good]
    assert not left or not chosen or min(chosen) > max(left)
    count = len(chosen) + len(left)
    assert not count or len(chosen) >= max(1, round(share * count))
