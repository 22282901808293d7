"""Layers beside the base: their input is what enters the base's first layer, and a copied layer computes what its original does."""

import pytest
import torch
from torch import nn

from engine.methods.transformer import Attention, Inputs, Layer, make_layers, padded
from tests.bases import SENTENCES, tiny_base

SHAPE = dict(
    d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
    decoder_attention_heads=2, max_position_embeddings=40, vocab_size=50, dropout=0.0, attention_dropout=0.0,
    activation_dropout=0.0, init_std=0.3,
)  # fmt: skip


class Stand:
    """What `make_layers` and `Inputs` ask of a base."""

    precision = "float32"

    def __init__(self, model):
        self.model = model.eval().requires_grad_(False)
        self.decoder_layers = model.get_decoder().layers
        self.d_model = model.config.d_model


def family(name):
    import transformers as t

    torch.manual_seed(0)
    if name == "marian":
        return Stand(t.MarianMTModel(t.MarianConfig(**SHAPE, pad_token_id=1, scale_embedding=True)))
    if name == "m2m100":
        return Stand(t.M2M100ForConditionalGeneration(t.M2M100Config(**SHAPE, pad_token_id=1, scale_embedding=True)))
    return Stand(t.MBartForConditionalGeneration(t.MBartConfig(**SHAPE, pad_token_id=1, scale_embedding=True)))


def entering(stack, layer, **inputs):
    """Arguments and output of a layer of the base in one pass."""
    seen = {}

    def keep(module, args, kwargs, output):
        seen["states"] = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
        seen["output"] = output if isinstance(output, torch.Tensor) else output[0]

    handle = stack.layers[layer].register_forward_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            stack(**inputs)
    finally:
        handle.remove()
    return seen


@pytest.mark.parametrize("name", ["marian", "m2m100", "mbart"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_inputs_are_what_enters_the_bases_first_layer(name, side):
    base = family(name)
    ids, mask = padded([[5, 6, 7, 8, 9], [9, 8, 7]], 1, torch.device("cpu"))
    stack = base.model.get_encoder() if side == "encoder" else base.model.get_decoder()
    more = {} if side == "encoder" else {"encoder_hidden_states": torch.zeros(2, 3, 16)}
    seen = entering(stack, 0, input_ids=ids, **more)
    assert torch.allclose(Inputs(base, side)(ids)[mask], seen["states"][mask], atol=1e-6)


@pytest.mark.parametrize("name", ["marian", "m2m100", "mbart"])
def test_a_copied_layer_computes_what_its_original_does(name):
    base = family(name)
    ids, mask = padded([[5, 6, 7, 8, 9], [9, 8, 7]], 1, torch.device("cpu"))
    copies = make_layers(base, "encoder", 2, cross=False, dropout=0.0, copied=True).eval()
    for number, copy in enumerate(copies):
        seen = entering(base.model.get_encoder(), number, input_ids=ids, attention_mask=mask.long())
        assert torch.allclose(copy(seen["states"], mask)[mask], seen["output"][mask], atol=1e-5)


def test_a_copied_decoder_layer_attends_as_its_original_where_there_is_one_token():
    base = family("marian")  # with one token the original's causal mask hides nothing
    ids, mask = padded([[5], [9]], 1, torch.device("cpu"))
    other, other_mask = torch.randn(2, 4, 16), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()
    (copy, _) = make_layers(base, "decoder", 2, cross=True, dropout=0.0, copied=True).eval()
    seen = entering(
        base.model.get_decoder(), 0, input_ids=ids, encoder_hidden_states=other, encoder_attention_mask=other_mask.long()
    )
    assert torch.allclose(copy(seen["states"], mask, other, other_mask), seen["output"], atol=1e-5)


def test_attention_is_softmax_of_scaled_products_and_padding_is_not_seen():
    torch.manual_seed(1)
    attention = Attention(8, 2).double()
    query, states = torch.randn(1, 3, 8, dtype=torch.float64), torch.randn(1, 5, 8, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, False]])
    got = attention(query, states, mask)
    for t in range(3):
        heads = []
        for h in range(2):
            part = slice(4 * h, 4 * h + 4)
            q = (attention.q_proj.weight @ query[0, t] + attention.q_proj.bias)[part]
            keys = [(attention.k_proj.weight @ s + attention.k_proj.bias)[part] for s in states[0, :3]]
            values = [(attention.v_proj.weight @ s + attention.v_proj.bias)[part] for s in states[0, :3]]
            e = torch.exp(torch.stack([q @ k / 2.0 for k in keys]))
            heads.append(sum(w * v for w, v in zip(e / e.sum(), values, strict=True)))
        expected = attention.out_proj.weight @ torch.cat(heads) + attention.out_proj.bias
        assert torch.allclose(got[0, t], expected, atol=1e-10)
    weights = attention.weights(query, attention.project(states)[0], mask)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    assert not weights[..., 3:].any()


def test_a_quiet_layer_passes_on_what_it_gets():
    torch.manual_seed(2)
    layer = Layer(8, 2, 16, cross=False, post_norm=False, dropout=0.0).quiet()
    states = torch.randn(2, 4, 8)
    assert torch.equal(layer(states, torch.ones(2, 4, dtype=torch.bool)), states)


def test_inputs_and_copies_leave_the_base_out_of_the_weights():
    base = tiny_base()
    module = nn.Module()
    module.layers = make_layers(base, "encoder", 1, cross=True, dropout=0.0, copied=True)
    assert all(key.startswith("layers.0.") for key in module.state_dict())
    assert all(p.requires_grad for p in module.parameters())
    ids = base.pad_batch(base.encode([SENTENCES[0][0]]))
    assert not Inputs(base, "encoder")(ids).requires_grad
