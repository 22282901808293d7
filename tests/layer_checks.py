"""What every method with parts inside the layers is held to, on a post-norm and a pre-norm base."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.losses import target_states
from engine.training.batches import make_batch
from tests.bases import SENTENCES, tiny_base
from tests.reference_transformer import double_base, family_base, hidden_states, scattered

__all__ = [
    "check_half_precision",
    "check_identity_and_detachment",
    "check_learning",
    "check_sides",
    "check_strength",
    "hooks",
    "make",
]


def make(name: str, base: Any, **options: Any) -> tuple[Any, Any]:
    """A method and its new module over a base."""
    method = get_method(name)
    return method, method.build(base, Artefacts(), method.config_class(**options))


def check_identity_and_detachment(name: str, family: str, **options: Any) -> None:
    """Untrained, and at strength 0, and after an error, output is the base's bit for bit; nothing stays behind."""
    base = family_base(family)
    method, module = make(name, base, **options)
    before = hidden_states(base)
    with method.attach(base, module):
        assert hooks(base)
        assert torch.equal(hidden_states(base), before)
    scattered(module).float()
    with method.attach(base, module, 0.0):
        assert not hooks(base)
        assert torch.equal(hidden_states(base), before)

    def failing() -> None:
        with method.attach(base, module):
            assert not torch.allclose(hidden_states(base), before, atol=1e-3)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        failing()
    assert not hooks(base)
    assert torch.equal(hidden_states(base), before)


def hooks(base: Any) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in base.model.modules())


def check_strength(name: str, **options: Any) -> None:
    """At half strength each part changes what it is given half as much."""
    base = double_base("marian")
    _, module = make(name, base, **options)
    scattered(module)
    torch.manual_seed(3)
    for _, _, position, part in module.placed():
        if position.endswith("_norm"):
            continue
        states = torch.randn(2, 5, getattr(part, "a", torch.empty(base.d_model)).shape[0], dtype=torch.float64)
        change = part(states) - states
        assert change.abs().max() > 1e-2
        assert torch.allclose(part(states, 0.5) - states, 0.5 * change, atol=1e-12)
        assert torch.equal(part(states, 0.0), states)


def check_half_precision(name: str, **options: Any) -> None:
    """Over a base in bfloat16 the module works in float32, as in training, and in bfloat16, as when it is loaded."""
    base = tiny_base(layers=2)
    base.model.to(torch.bfloat16)
    before = hidden_states(base)
    method, module = make(name, base, **options)
    scattered(module, 0.1).float()
    for kind in (torch.float32, torch.bfloat16):
        module.to(kind)
        with method.attach(base, module):
            states = hidden_states(base)
        assert states.dtype == torch.bfloat16
        assert torch.isfinite(states).all()
        assert not torch.equal(states, before)


def check_sides(name: str, **options: Any) -> None:
    """Whether the encoder is changed hangs on the options, and training computes its output anew exactly then."""
    base = tiny_base(layers=2)
    pairs = Pairs.encode(base, SENTENCES[:4])
    plain = make_batch(base, *make("extreme", base), pairs, [0, 1, 2, 3], 0)  # of a method that leaves the encoder alone
    assert plain.encoded is not None
    for sides in (("encoder",), ("decoder",), ("encoder", "decoder")):
        method, module = make(name, base, sides=sides, **options)
        scattered(module).float()
        assert {side for side, *_ in module.placed()} == set(sides)
        assert method.changes_encoder(module) == ("encoder" in sides)
        with method.attach(base, module), torch.no_grad():
            batch = make_batch(base, method, module, pairs, [0, 1, 2, 3], 0)
            assert (batch.encoded is None) == ("encoder" in sides)
            trained_on = target_states(base, batch)
            translated = base.model.model(
                input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs, use_cache=False
            ).last_hidden_state  # (B, T, d)
        assert torch.allclose(trained_on, translated[batch.labels != base.pad], atol=1e-5)
        assert not torch.allclose(trained_on, target_states(base, plain), atol=1e-3)
    _, module = make(name, base, encoder_layers=(), decoder_layers=(1,), **options)
    assert {(side, number) for side, number, *_ in module.placed()} == {("decoder", 1)}
    assert not get_method(name).changes_encoder(module)


def check_learning(name: str, family: str, *, updates: int = 8, rate: float = 5e-3, **options: Any) -> None:
    """A few updates lower the loss; every weight has moved, and none of the base has a gradient."""
    base = family_base(family)
    method, module = make(name, base, **options)
    pairs = Pairs.encode(base, SENTENCES)
    start = {key: value.clone() for key, value in module.state_dict().items()}
    optimizer = torch.optim.Adam(module.parameters(), lr=rate * method.lr_scale(module))
    losses = []
    with method.attach(base, module):
        module.train()
        for step in range(updates):
            batch = make_batch(base, method, module, pairs, list(range(len(pairs))), step)
            loss = method.loss(base, module, batch)
            losses.append(loss.total.item())
            optimizer.zero_grad()
            loss.total.backward()
            optimizer.step()
    assert losses[-1] < losses[0] - 0.01, losses
    assert not [key for key, value in module.state_dict().items() if torch.equal(value, start[key])]
    assert all(parameter.grad is None for parameter in base.model.parameters())
