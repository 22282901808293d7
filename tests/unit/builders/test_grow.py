"""A base that is deepened begins nearly where it stood: wider exactly, deeper almost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.builders.bases.grow import grow_encoder
from engine.builders.bases.network import initial_model, load_model
from engine.builders.bases.options import SIZES, BaseTrainingOptions
from engine.builders.bases.vocabulary import Vocabulary
from engine.errors import OptionError
from tests.bases import make_base

VOCABULARY = Vocabulary(None, 64, 63, {"en": 61, "zh": 62}, "en", "zh")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base trained for some updates, so that its normalisations are not at their first values."""
    return make_base(tmp_path_factory.mktemp("grow") / "base")


def loss(model: Any) -> torch.Tensor:
    torch.manual_seed(0)
    words = torch.randint(300, (4, 12))
    with torch.no_grad():
        return model.eval()(input_ids=words, labels=words.flip(1)).logits


def test_a_wider_encoder_gives_the_same_to_the_last_digits(start: Path) -> None:
    model, grown = load_model(start), grow_encoder(load_model(start), 0, 100)
    assert grown.config.encoder_ffn_dim == 100
    torch.testing.assert_close(loss(grown), loss(model), rtol=1e-4, atol=1e-4)


def test_a_deeper_encoder_begins_near_the_trained_one(start: Path) -> None:
    model, grown = load_model(start), grow_encoder(load_model(start), 4, 0)
    assert len(grown.model.encoder.layers) == grown.config.encoder_layers == 4
    correlation = torch.corrcoef(torch.stack([loss(model).flatten(), loss(grown).flatten()]))[0, 1]
    assert correlation > 0.9


def test_what_was_added_learns(start: Path) -> None:
    grown = grow_encoder(load_model(start), 4, 80)
    words = torch.randint(300, (4, 12))
    grown(input_ids=words, labels=words).loss.backward()
    added = grown.model.encoder.layers[1]
    assert added.self_attn.out_proj.weight.grad.abs().max() > 0
    assert grown.model.encoder.layers[0].fc2.weight.grad[:, 64:].abs().max() > 0


def test_a_grown_base_is_saved_and_loaded_as_any(start: Path, tmp_path: Path) -> None:
    grown = grow_encoder(load_model(start), 4, 80)
    grown.save_pretrained(tmp_path)
    torch.testing.assert_close(loss(load_model(tmp_path)), loss(grown))


def test_it_cannot_become_smaller(start: Path) -> None:
    with pytest.raises(OptionError, match="encoder_layers: the base to go on from has 2, which 3 is no multiple of"):
        grow_encoder(load_model(start), 3, 0)
    with pytest.raises(OptionError, match="encoder_ffn: the base to go on from has 64, which is more than 32"):
        grow_encoder(load_model(start), 0, 32)


def test_the_size_deep_has_the_decoder_of_small() -> None:
    config = initial_model(VOCABULARY, BaseTrainingOptions(size="deep"), None).config
    small = SIZES["small"]
    assert (config.d_model, config.decoder_layers, config.decoder_ffn_dim) == (256, small.decoder_layers, 1024)
    assert (config.encoder_layers, config.encoder_ffn_dim) == (12, 2048)
