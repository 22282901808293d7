"""A token through `Decoder` gives what the library's forward gives for the whole prefix, whatever has hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.base import BaseModel
from engine.base.onednn import fast_products
from engine.decoding.beam_search import top
from engine.decoding.decoder import Decoder
from tests.bases import tiny_base
from tests.pretend_cuda import is_on_gpu, pretend_cuda

BEAMS = 3
HOOKS: dict[str, Callable[[Any], list[Any]]] = {
    "none": lambda decoder: [],
    "attention over the prefix": lambda decoder: [decoder.layers[0].self_attn],
    "attention over the source": lambda decoder: [decoder.layers[-1].encoder_attn],
    "queries": lambda decoder: [decoder.layers[0].self_attn.q_proj],
    "feed-forward": lambda decoder: [decoder.layers[0].fc2],
    "a layer": lambda decoder: [decoder.layers[0]],
    "the decoder": lambda decoder: [decoder],
}


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return tiny_base()


def halved(module: Any, args: Any, output: Any) -> Any:
    """What a plugin's hook may do: states that are not the base's."""
    if hasattr(output, "last_hidden_state"):
        output.last_hidden_state = output.last_hidden_state / 2
        return output
    return (output[0] / 2, *output[1:]) if isinstance(output, tuple) else output / 2


@pytest.mark.parametrize("where", HOOKS)
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("quick", [True, False])
def test_step_by_step_as_all_at_once(base: BaseModel, where: str, share: bool, quick: bool) -> None:
    handles = [module.register_forward_hook(halved) for module in HOOKS[where](base.model.get_decoder())]
    try:
        with torch.inference_mode(), fast_products(base) if quick else torch.no_grad():
            walk(base, share)
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("where", ["none", "attention over the source", "a layer"])
@pytest.mark.parametrize("share", [True, False])
def test_step_by_step_on_a_device_that_is_not_the_cpu(where: str, share: bool) -> None:
    with pretend_cuda(), torch.inference_mode():
        base = tiny_base()
        base.model.to("cuda")
        assert all(map(is_on_gpu, base.model.parameters()))
        for module in HOOKS[where](base.model.get_decoder()):
            module.register_forward_hook(halved)
        walk(base, share)


def walk(base: BaseModel, share: bool) -> None:
    """Three sentences, three hypotheses each, moved at every step; one sentence leaves; a prefix of more tokens than the cache
    has room for at first.
    """
    inputs = base.pad_batch(base.encode(["The rain in Spain.", "No.", "He wrote to her every day of that year."]))
    mask = (inputs != base.pad).long()
    encoded = base.model.get_encoder()(input_ids=inputs, attention_mask=mask).last_hidden_state
    decoder = Decoder(base.model, encoded, mask, share)
    dice, device = torch.Generator().manual_seed(5), base.device
    start = torch.full((3, 1), base.model.config.decoder_start_token_id, device=device)
    prefix, owner = start, torch.arange(3, device=device)
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    with decoder.stack:
        for step in range(40):
            logits = decoder(prefix[:, -1:], step)
            if step in (0, 1, 2, 7, 8, 39):
                seen.append((prefix, owner, logits))
            if step == 0:
                decoder.widen(BEAMS)
                rows, left = torch.arange(3, device=device).repeat_interleave(BEAMS), None
            else:
                sentences = len(owner) // BEAMS
                rows = torch.arange(sentences, device=device).repeat_interleave(BEAMS) * BEAMS
                rows = rows + torch.randint(BEAMS, rows.shape, generator=dice).to(device)
                left = torch.tensor([0, 2], device=device) if step == 7 else None
                if left is not None:
                    rows = rows.view(-1, BEAMS)[left].flatten()
            decoder.reorder(rows, left)
            prefix, owner = prefix[rows], owner[rows]
            token = torch.randint(10, 200, (len(rows), 1), generator=dice).to(device)
            prefix = torch.cat([prefix, token], 1)
    for prefix, owner, logits in seen:
        expected = base.model(
            input_ids=inputs[owner], attention_mask=mask[owner], decoder_input_ids=prefix, use_cache=False
        ).logits[:, -1]
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@given(
    rows=st.integers(1, 5), size=st.integers(1, 1200), count=st.integers(1, 12), levels=st.integers(2, 10_000),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_top_is_topk(rows: int, size: int, count: int, levels: int, seed: int) -> None:
    dice = torch.Generator().manual_seed(seed)
    values = torch.randint(levels, (rows, size), generator=dice).float()
    best, at = top(values, count)
    assert torch.equal(best, values.topk(min(count, size)).values)
    assert torch.equal(values.gather(1, at), best)
    assert all(len(set(row)) == len(row) for row in at.tolist())
