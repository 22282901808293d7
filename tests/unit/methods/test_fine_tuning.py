"""Fine-tuning: tuned copies of weights and low-rank changes, and that the base is the very same one afterwards."""

import pytest
import torch

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import Segment
from engine.decoding.scoring import score
from engine.errors import OptionError
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.fine_tuning.config import FineTuningConfig
from engine.methods.interface import Batch
from engine.methods.weight_swap import TunedWeights, parameter_holders
from engine.plugins import Plugin, PluginStack, read_bundle_card
from engine.training.loop import make_optimizer
from engine.training.options import TrainingOptions
from tests.bases import SENTENCES, tiny_base

METHOD = get_method("fine_tuning")
TEXTS = [a for a, _ in SENTENCES]


def module_for(base, *, moved=0.0, seed=5, **options):
    """A module; `moved` shifts every trained weight at random, so that it does something."""
    torch.manual_seed(seed)
    module = METHOD.build(base, Artefacts(), FineTuningConfig(**options))
    if moved:
        for parameter in module.parameters():
            parameter.data += moved * torch.randn_like(parameter)
    METHOD.prepare_for_inference(module)
    return module


def plugin_for(base, **options):
    return Plugin(METHOD, module_for(base, **options), {})


def objects(base):
    """Every module and every parameter of the base, as the objects that they are."""
    held = {full: id(module._parameters[name]) for rows in parameter_holders(base.model).values() for full, module, name in rows}
    return held, {name: id(module) for name, module in base.model.named_modules()}


def batch_of(base):
    pairs = Pairs.encode(base, SENTENCES)
    sources, labels = base.pad_batch(pairs.sources), base.pad_batch(pairs.labels)
    mask = (sources != base.pad).long()
    return Batch(sources, mask, None, base.shift_right(labels), labels, 0, pairs, range(len(pairs)))


KINDS = [{"kind": "full"}, {"kind": "full", "which": "decoder"}, {"kind": "lora"}, {"kind": "lora", "which": "decoder"}]


@pytest.mark.parametrize("options", KINDS)
def test_untrained_it_is_the_base_bit_for_bit(base, options):
    plugin = plugin_for(base, **options)
    assert score(base, SENTENCES, plugin) == score(base, SENTENCES)


@pytest.mark.parametrize("options", KINDS)
def test_the_very_same_objects_are_put_back_also_when_the_work_fails(base, options):
    before, scores = objects(base), score(base, SENTENCES)
    module = module_for(base, moved=0.1, **options)
    with METHOD.attach(base, module):
        assert objects(base) != before
    with pytest.raises(ZeroDivisionError), METHOD.attach(base, module):
        raise ZeroDivisionError
    assert objects(base) == before
    assert score(base, SENTENCES) == scores
    with METHOD.attach(base, module, 0.0):
        assert objects(base) == before
    assert not any(parameter.requires_grad for parameter in base.model.parameters())


def test_tied_weights_stay_tied_while_exchanged(base):
    module = module_for(base, moved=0.1)
    with METHOD.attach(base, module):
        assert base.model.lm_head.weight is base.model.model.shared.weight
        assert base.model.model.decoder.embed_tokens.weight is base.model.model.shared.weight
        assert base.model.model.shared.weight is dict(module.named_parameters())["model.shared.weight"]


@pytest.mark.parametrize("strength", [0.25, 1.0, 1.5])
def test_strength_moves_from_the_base_to_the_tuned_weights(base, strength):
    module = module_for(base, moved=0.1)
    name = "model.decoder.layers.1.fc1.weight"
    holder = base.model.model.decoder.layers[1].fc1
    original, tuned = holder.weight.double(), dict(module.named_parameters())[name].double()
    with METHOD.attach(base, module, strength):
        assert torch.allclose(holder.weight.double(), original + strength * (tuned - original), atol=1e-7)


def test_a_low_rank_change_is_its_equation(base):
    """W x + b + s α/r B A x (Hu et al., equation 3), in float64, for one map."""
    module = module_for(base, kind="lora", rank=4, lora_alpha=12.0, moved=0.2)
    parts = {key: value.double() for key, value in module.state_dict().items()}
    linear = base.model.model.decoder.layers[0].self_attn.q_proj
    a, b = (parts[f"model.decoder.layers.0.self_attn.q_proj.{part}.weight"] for part in ("lora_A", "lora_B"))
    x = torch.randn(3, base.d_model)
    for strength in (0.5, 1.0):
        rows = []
        for row in x.double():
            rows.append(linear.weight.double() @ row + linear.bias.double() + strength * 12.0 / 4 * (b @ (a @ row)))
        with METHOD.attach(base, module, strength):
            result = base.model.model.decoder.layers[0].self_attn.q_proj(x)
        assert torch.allclose(result.double(), torch.stack(rows), atol=1e-5)
    assert base.model.model.decoder.layers[0].self_attn.q_proj is linear


def test_low_rank_weights_alone_are_saved(base):
    module = module_for(base, kind="lora", which="encoder", target_modules=("q_proj", "fc1"))
    keys = set(module.state_dict())
    assert keys == {name for name, _ in module.named_parameters()}
    assert all(key.endswith(("lora_A.weight", "lora_B.weight")) for key in keys)
    assert len(keys) == 2 * 2 * 2  # maps, layers, A and B
    assert all(".encoder." in key for key in keys)
    assert METHOD.changes_encoder(module)
    assert not METHOD.changes_encoder(module_for(base, kind="lora", which="decoder"))


@pytest.mark.parametrize(("own", "part"), [(8, "all"), (4, "all"), (3, "decoder"), (0, "decoder")])
def test_sources_that_the_base_wrote_teach_the_decoder_alone(base, own, part, tmp_path):
    train = [Segment(text, source if number < own else None) for number, (source, text) in enumerate(SENTENCES)]
    samples = Samples(None, train, [], tmp_path, load_settings())  # as they are before there are pairs
    config = METHOD.prepare(samples, FineTuningConfig(), Progress()).config
    assert config.which == part
    assert METHOD.changes_encoder(METHOD.build(base, Artefacts(), config)) == (part == "all")
    assert METHOD.prepare(samples, FineTuningConfig(which="biases"), Progress()).config.which == "biases", "asked for"


@pytest.mark.parametrize(
    ("which", "inside", "outside"),
    [
        ("all", "model.shared.weight", "model.encoder.embed_positions.weight"),
        ("decoder", "model.decoder.layers.0.fc1.weight", "model.shared.weight"),
        ("encoder", "model.encoder.layers.0.fc1.weight", "model.decoder.layers.0.fc1.weight"),
        ("cross_attention", "model.decoder.layers.0.encoder_attn.q_proj.bias", "model.decoder.layers.0.fc1.bias"),
        ("embeddings", "model.shared.weight", "model.decoder.layers.0.fc1.weight"),
        ("layer_norms", "model.decoder.layers.0.final_layer_norm.weight", "model.decoder.layers.0.fc1.bias"),
        ("biases", "model.decoder.layers.0.fc1.bias", "model.decoder.layers.0.fc1.weight"),
    ],
)
def test_a_part_of_the_weights_can_be_chosen(base, which, inside, outside):
    keys = set(TunedWeights(base, which).state_dict())
    assert inside in keys
    assert outside not in keys
    assert METHOD.changes_encoder(module_for(base, which=which)) == any("decoder" not in key for key in keys)


@pytest.mark.parametrize("options", KINDS)
def test_only_the_plugins_weights_learn(base, options):
    module = module_for(base, dropout=0.0, lora_dropout=0.0, **options)
    optimizer = make_optimizer(METHOD, module, TrainingOptions())
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(module.parameters()))
    module.train()
    batch = batch_of(base)
    losses = []
    with METHOD.attach(base, module):
        for _ in range(4):
            loss = METHOD.loss(base, module, batch)
            optimizer.zero_grad()
            loss.total.backward()
            for group in optimizer.param_groups:
                group["lr"] = 0.01
            optimizer.step()
            losses.append(float(loss.total))
    assert losses[-1] < losses[0]
    assert all(parameter.grad is None for parameter in base.model.parameters())


def test_dropout_in_training_is_undone(base):
    module = module_for(base, dropout=0.4)
    with METHOD.attach(base, module):
        torch.manual_seed(1)
        loss = float(METHOD.loss(base, module, batch_of(base)).total)
        torch.manual_seed(2)
        assert float(METHOD.loss(base, module, batch_of(base)).total) != loss
    layers = [*base.decoder_layers, *base.model.get_encoder().layers]
    assert all(layer.dropout == 0.0 and not layer.training for layer in layers)


def test_dropout_is_that_which_the_base_was_trained_with(base):
    module, layers = module_for(base), [*base.decoder_layers, *base.model.get_encoder().layers]
    with METHOD.attach(base, module):
        assert float(METHOD.loss(base, module, batch_of(base)).total) == float(METHOD.loss(base, module, batch_of(base)).total)
        try:
            for layer in layers:
                layer.dropout = 0.3
            torch.manual_seed(1)
            loss = float(METHOD.loss(base, module, batch_of(base)).total)
            torch.manual_seed(2)
            assert float(METHOD.loss(base, module, batch_of(base)).total) != loss
            assert all(layer.dropout == 0.3 and not layer.training for layer in layers)
        finally:
            for layer in layers:
                layer.dropout = 0.0


def test_distance_keeps_the_weights_close(base):
    module = module_for(base, moved=0.1, keep_close=3.0, dropout=0.0)
    original = dict(base.model.named_parameters())
    total, count = 0.0, 0
    for name, tuned in module.named_parameters():
        total += float((tuned.double() - original[name].double()).square().sum())
        count += tuned.numel()
    with METHOD.attach(base, module):
        loss = METHOD.loss(base, module, batch_of(base))
    assert loss.parts["distance"] == pytest.approx(total / count, rel=1e-4)
    assert float(loss.total) == pytest.approx(loss.parts["nll"] + 3.0 * total / count, rel=1e-4)


@pytest.mark.parametrize("options", KINDS[::2])
def test_shrink_goes_part_of_the_way(base, options):
    half, full = (module_for(base, moved=0.1, shrink=share, **options) for share in (0.5, 1.0))
    for module in (half, full):
        module.shrink(1.0)  # both from changes of 16 bits
    METHOD.after_training(half)
    with METHOD.attach(base, full, 0.5):
        expected = base.model(input_ids=batch_of(base).sources, decoder_input_ids=batch_of(base).inputs).logits
    with METHOD.attach(base, half):
        result = base.model(input_ids=batch_of(base).sources, decoder_input_ids=batch_of(base).inputs).logits
    assert torch.allclose(result, expected, atol=1e-4)


def test_changes_of_several_plugins_add_up(base):
    dense, other = module_for(base, moved=0.1, seed=1), module_for(base, moved=0.1, seed=2)
    low, lower = (module_for(base, kind="lora", moved=0.2, seed=seed) for seed in (3, 4))
    holder = base.model.model.decoder.layers[0].self_attn
    original, linear = holder.q_proj.weight, holder.q_proj
    name = "model.decoder.layers.0.self_attn.q_proj.weight"
    changes = [dict(module.named_parameters())[name] - original for module in (dense, other)]
    with METHOD.attach(base, dense), METHOD.attach(base, other):
        assert torch.allclose(holder.q_proj.weight, original + sum(changes), atol=1e-6)
    x = torch.randn(2, base.d_model)
    with METHOD.attach(base, low):
        first = holder.q_proj(x) - linear(x)
    with METHOD.attach(base, lower):
        second = holder.q_proj(x) - linear(x)
    with METHOD.attach(base, low), METHOD.attach(base, lower):
        assert torch.allclose(holder.q_proj(x), linear(x) + first + second, atol=1e-5)
    assert holder.q_proj is linear
    assert linear.weight is original
    stack = PluginStack([Plugin(METHOD, dense, {}), Plugin(METHOD, low, {})])
    assert score(base, SENTENCES[:2], stack) != score(base, SENTENCES[:2])


def test_a_half_precision_base_gets_plugins_in_its_own_type():
    base = tiny_base()
    base.model.to(torch.bfloat16)
    base.precision = "bfloat16"
    base.__dict__["_fingerprint"] = "sha256:tiny"
    for options in KINDS[::2]:
        module = module_for(base, **options)
        assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
        module.to(base.dtype)
        assert score(base, SENTENCES[:2], Plugin(METHOD, module, {})) == score(base, SENTENCES[:2])


def test_what_does_not_fit_is_refused_with_a_sentence(base, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("engine.methods.weight_swap.held_in_integers", lambda base: True)  # as on a GPU
        with pytest.raises(OptionError, match="held in int8, and its weights cannot be exchanged"):
            module_for(base)
    with pytest.raises(OptionError, match="low-rank updates apply to linear maps only, and biases are not linear maps"):
        module_for(base, kind="lora", which="biases")
    with pytest.raises(OptionError, match="which: 'heads' is not one of auto, all, decoder"):
        FineTuningConfig(which="heads")


def bundle_of(module, base, path):
    from engine.plugins import BundleContent, export_bundle

    content = BundleContent(name="p", base=base, method=METHOD, config=module.config, module=module, files={})
    return export_bundle(path, content)


@pytest.mark.parametrize("completed", [False, True])
@pytest.mark.parametrize("options", [KINDS[0], KINDS[2], {"which": "decoder", "shrink": 0.75}])
def test_a_bundle_brings_the_weights_back_to_the_bit(base, tmp_path, options, completed):
    module = module_for(base, moved=0.1, **options)
    if completed:
        METHOD.after_training(module)
    loaded = Plugin.load(bundle_of(module, base, tmp_path / "p.zip"), base, cache=tmp_path / "cache")
    assert score(base, SENTENCES, loaded) == score(base, SENTENCES, Plugin(METHOD, module, {}))
    for key, weight in loaded.module.state_dict().items():
        assert torch.equal(weight, module.state_dict()[key]), key


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_trained_weights_take_a_quarter_of_the_bytes_and_older_bundles_stay_whole(base, tmp_path, size):
    module = module_for(base, moved=size)
    full = bundle_of(module, base, tmp_path / "whole.zip")
    METHOD.after_training(module)
    packed = bundle_of(module, base, tmp_path / "packed.zip")
    assert packed.stat().st_size < 0.3 * full.stat().st_size
    by_chance = size < 1e-5  # a change this small may be one of 16 bits, and is packed at once
    assert [read_bundle_card(path)["format_version"] for path in (full, packed)] == [3 if by_chance else 1, 3]
    before = {key: weight.clone() for key, weight in module.state_dict().items()}
    METHOD.after_training(module)
    assert all(torch.equal(weight, before[key]) for key, weight in module.state_dict().items()), "once is for good"


@pytest.mark.parametrize("which", ["all", "decoder", "cross_attention", "embeddings", "layer_norms", "biases", "lora"])
def test_it_learns_over_a_half_precision_base(which):
    base = tiny_base(layers=1)
    base.model.to(torch.bfloat16)
    base.precision = "bfloat16"
    base.__dict__["_fingerprint"] = "sha256:tiny"
    module = module_for(base, **({"kind": "lora"} if which == "lora" else {"which": which}))
    module.train()
    with METHOD.attach(base, module), torch.autocast("cpu", dtype=torch.bfloat16):
        loss = METHOD.loss(base, module, batch_of(base)).total
    loss.backward()
    grads = [parameter.grad for parameter in module.parameters()]
    assert all(grad is not None and bool(torch.isfinite(grad).all()) for grad in grads)
    assert any(bool(grad.any()) for grad in grads)
