"""What a vocabulary says of general text: probabilities where it is a unigram model, nothing where it is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.base import BaseModel
from engine.base.piece_probabilities import piece_probabilities
from tests.bases import EN_ZH


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


def test_usual_pieces_are_more_probable_than_rare_ones(base: BaseModel) -> None:
    shares = piece_probabilities(base)
    assert sum(shares.values()) == pytest.approx(1, abs=0.1)
    the, government, teapot = (base.tokenizer.convert_tokens_to_ids(f"▁{word}") for word in ("the", "government", "tea"))
    assert shares[the] > shares[government] > shares[teapot] > 0
    assert base.tokenizer.unk_token_id not in shares


def test_merges_have_no_probabilities(base: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = SimpleNamespace(  # the sum of such a series is near ten
        get_piece_size=lambda: 400, get_score=lambda i: -i / 10, id_to_piece=lambda i: f"▁piece{i}"
    )
    monkeypatch.setattr(base.tokenizer, "spm_source", ranked)
    assert piece_probabilities(base) == {}
    monkeypatch.setattr(base, "tokenizer", SimpleNamespace())
    assert piece_probabilities(base) == {}
