"""The memory-augmented adapter against a slow float64 reference of the paper's equations, and what users rely on."""

import contextlib
import math

import pytest
import torch

from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method, method_names
from engine.methods.batches import Pairs
from engine.methods.interface import Batch
from engine.methods.memory_adapter.config import RELEASED_CODE, MemoryAdapterConfig
from engine.methods.memory_adapter.method import symmetric_kl
from engine.methods.memory_adapter.module import SPEED, MemoryAdapterModule, MemoryReader
from engine.methods.memory_adapter.two_pass import CachedFirstPass
from engine.plugins import Plugin
from tests.bases import SENTENCES

D, N = 16, 23


@pytest.fixture(scope="module")
def memory(base, tmp_path_factory):
    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    return record(base, pairs, tmp_path_factory.mktemp("memory") / "memory.safetensors")


def module_for(base, memory, *, trained=False, **options):
    """An adapter; `trained` gives every weight a value that is not its first one, so that the adapter does something."""
    torch.manual_seed(3)
    config = MemoryAdapterConfig(**options)
    module = get_method("memory_adapter").build(base, Artefacts(memory=memory), config)
    if trained:
        torch.manual_seed(4)
        for name, parameter in module.named_parameters():
            parameter.data += torch.randn_like(parameter) * (0.3 / SPEED if name.endswith("scale") else 0.1)
            if name.endswith("scale"):
                parameter.data += 0.8 / SPEED
    return module


def reader_with(seed=0, **options):
    torch.manual_seed(seed)
    reader = MemoryReader(D, MemoryAdapterConfig(**options)).double()
    for parameter in reader.parameters():
        parameter.data = torch.randn_like(parameter) * 0.4
    reader.memory = torch.randn(N, D, dtype=torch.float64)
    return reader


def equation_5(reader, anchor, query, temperature, scale=True):
    """Equations 4 and 5, word for word, one token after the other, in float64."""
    wq, wk, wv = (linear.weight.T for linear in (reader.query, reader.key, reader.value))  # x W, as the paper writes
    bq, bk, bv = (
        linear.bias if linear.bias is not None else torch.zeros(D, dtype=torch.float64)
        for linear in (reader.query, reader.key, reader.value)
    )
    result = torch.zeros_like(anchor)
    for b in range(anchor.shape[0]):
        for t in range(anchor.shape[1]):
            q = query[b, t] @ wq + bq
            scores = torch.stack([q @ (row @ wk + bk) for row in reader.memory]) / temperature
            weights = torch.exp(scores - scores.max())
            weights = weights / weights.sum()
            read = sum(w * (row @ wv + bv) for w, row in zip(weights, reader.memory, strict=True))
            a = anchor[b, t]
            hidden = torch.cat([a, read]) @ reader.gate_hidden.weight.T
            if reader.gate_hidden.bias is not None:
                hidden = hidden + reader.gate_hidden.bias
            z = torch.clamp(hidden, min=0) @ reader.gate_out.weight.T
            if reader.gate_out.bias is not None:
                z = z + reader.gate_out.bias
            gate = 1 / (1 + torch.exp(-z))
            if scale and reader.scale is not None:
                gate = 1 - SPEED * reader.scale * (1 - gate)
            result[b, t] = gate * a + (1 - gate) * read
    return result


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.1}, {"start": "released_code"}, {"start": "released_code", "bias": True}]
)
@pytest.mark.parametrize("projected", [False, True])
def test_reader_is_equations_4_and_5(options, projected):
    reader = reader_with(**options)
    anchor, query = torch.randn(2, 3, D, dtype=torch.float64), torch.randn(2, 3, D, dtype=torch.float64)
    if projected:
        reader.project()
    expected = equation_5(reader, anchor, query, options.get("temperature", 0.5))
    assert torch.allclose(reader(anchor, query), expected, atol=1e-10)


def test_released_code_divides_queries_by_the_square_root_of_their_size():
    reader = reader_with(start="released_code", scale_query=True, bias=True)
    anchor, query = torch.randn(1, 2, D, dtype=torch.float64), torch.randn(1, 2, D, dtype=torch.float64)
    expected = equation_5(reader, anchor, query, 0.5 * math.sqrt(D))
    assert torch.allclose(reader(anchor, query), expected, atol=1e-10)


def test_released_code_is_a_set_of_named_options():
    config = MemoryAdapterConfig(**RELEASED_CODE)
    assert (config.dropout_unit, config.start, config.bias, config.pooling) == ("reader", "released_code", True, "sum_with_eos")
    d, layers = 512, 6
    module = MemoryAdapterModule(d, layers, config)
    assert sum(p.numel() for p in module.parameters()) == 15_759_372  # the authors' count for twelve readers


def test_dropped_memory_reads_zero_and_the_gate_still_runs():
    reader = reader_with()
    anchor, query = torch.randn(1, 2, D, dtype=torch.float64), torch.randn(1, 2, D, dtype=torch.float64)
    reader.dropped = True
    zero = torch.zeros_like(anchor)
    gate = torch.sigmoid(torch.relu(torch.cat([anchor, zero], -1) @ reader.gate_hidden.weight.T) @ reader.gate_out.weight.T)
    gate = 1 - SPEED * reader.scale * (1 - gate)
    assert torch.allclose(reader(anchor, query), gate * anchor, atol=1e-10)


def test_item_dropout_equals_a_memory_without_those_items():
    reader = reader_with()
    query = torch.randn(1, 4, D, dtype=torch.float64)
    drop = torch.rand(N) < 0.4
    reader.dropped = drop
    part = reader.read(query)
    reader.dropped = False
    reader.memory = reader.memory[~drop]
    assert torch.allclose(part, reader.read(query), atol=1e-12)


def test_an_empty_memory_reads_nothing():
    reader = reader_with()
    reader.memory = torch.zeros(0, D, dtype=torch.float64)
    assert not reader.read(torch.randn(1, 2, D, dtype=torch.float64)).any()


def test_half_of_both_divergences():
    p = torch.randn(5, 11, dtype=torch.float64).log_softmax(-1)
    q = torch.randn(5, 11, dtype=torch.float64).log_softmax(-1)
    slow = sum(
        0.5 * sum(float(a.exp() * (a - b) + b.exp() * (b - a)) for a, b in zip(pr, qr, strict=True))
        for pr, qr in zip(p, q, strict=True)
    )
    assert float(symmetric_kl(p, q)) == pytest.approx(slow / 5, rel=1e-12)


def batch_of(base, step=1000):
    inputs, labels = (
        base.pad_batch(base.encode([a for a, _ in SENTENCES])),
        base.pad_batch(base.encode_target([b for _, b in SENTENCES])),
    )
    mask = (inputs != base.pad).long()
    with torch.no_grad():
        encoded = base.model.get_encoder()(input_ids=inputs, attention_mask=mask).last_hidden_state
    pairs = Pairs.encode(base, SENTENCES)
    return Batch(inputs, mask, encoded, base.shift_right(labels), labels, step, pairs, range(len(SENTENCES)))


def test_loss_is_equation_9(base, memory):
    method = get_method("memory_adapter")
    module = module_for(base, memory, trained=True, memory_dropout=0.5, alpha=3.0, beta=2.0)
    batch = batch_of(base)

    def log_p():
        logits = base.model(
            encoder_outputs=(batch.encoded,), attention_mask=batch.mask, decoder_input_ids=batch.inputs, use_cache=False
        ).logits.double()
        return logits.log_softmax(-1)

    with method.attach(base, module), torch.no_grad():
        torch.manual_seed(5)
        loss = method.loss(base, module, batch)
        torch.manual_seed(5)
        assert module.drop()
        dropped = log_p()
        module.undrop()
        full = log_p()
    real = [(b, t) for b in range(batch.labels.shape[0]) for t in range(batch.labels.shape[1]) if batch.labels[b, t] != base.pad]
    total = 0.0
    for b, t in real:
        y = batch.labels[b, t]
        p, q = full[b, t], dropped[b, t]
        kl = float((p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum())
        total += -float(p[y]) - 3.0 * float(q[y]) + 2.0 * 0.5 * kl
    assert float(loss.total) == pytest.approx(total / len(real), rel=1e-4)


def test_loss_runs_one_pass_when_nothing_is_dropped(base, memory):
    method = get_method("memory_adapter")
    module = module_for(base, memory, trained=True, memory_dropout=0.0, alpha=5.0)
    with method.attach(base, module), torch.no_grad():
        loss = method.loss(base, module, batch_of(base))
    assert float(loss.total) == pytest.approx(6 * loss.parts["nll"], rel=1e-6)
    assert loss.parts["agreement"] == 0.0


@pytest.mark.parametrize("lowest", [0, 1, 2])
def test_the_second_pass_begins_at_the_lowest_layer_without_memory(base, memory, lowest, monkeypatch):
    method, batch = get_method("memory_adapter"), batch_of(base)
    module = module_for(base, memory, trained=True, alpha=3.0, beta=2.0).train()

    def drop():
        for layer, _, reader in module.readers():
            reader.dropped = layer == lowest
        return True

    monkeypatch.setattr(module, "drop", drop)
    calls = []
    handles = [
        layer.encoder_attn.register_forward_hook(lambda *_, index=index: calls.append(index))
        for index, layer in enumerate(base.decoder_layers)
    ]

    def learnt():
        module.zero_grad()
        calls.clear()
        with method.attach(base, module):
            loss = method.loss(base, module, batch)
        loss.total.backward()
        return loss.total.item(), [parameter.grad.clone() for parameter in module.parameters() if parameter.grad is not None]

    total, gradients = learnt()
    layers = len(base.decoder_layers)
    assert calls == [*range(layers), *range(lowest, layers)]
    monkeypatch.setattr(CachedFirstPass, "below", lambda self, layer: contextlib.nullcontext())
    expected_total, expected_gradients = learnt()
    assert calls == [*range(layers)] * 2
    for handle in handles:
        handle.remove()
    assert total == expected_total
    torch.testing.assert_close(gradients, expected_gradients)
    assert all("forward" not in vars(layer) for layer in base.decoder_layers)


@pytest.mark.parametrize("unit", ["layer", "reader", "item"])
def test_dropout_units(base, memory, unit):
    module = module_for(base, memory, memory_dropout=0.5, dropout_unit=unit)
    torch.manual_seed(0)
    module.drop()
    states = {(layer, position): reader.dropped for layer, position, reader in module.readers()}
    if unit == "layer":
        assert all(states[layer, "self_attn"] == states[layer, "encoder_attn"] for layer in range(3))
    if unit == "item":
        assert all(isinstance(state, torch.Tensor) for state in states.values())
    module.undrop()
    assert all(reader.dropped is False for _, _, reader in module.readers())


def test_untrained_adapter_changes_nothing(base, memory):
    sources = [a for a, _ in SENTENCES]
    before = translate(base, sources)
    scores = score(base, SENTENCES)
    plugin = Plugin(get_method("memory_adapter"), module_for(base, memory), {})
    assert translate(base, sources, plugin) == before
    assert score(base, SENTENCES, plugin) == scores


def test_base_is_bit_equal_before_and_after_and_at_strength_zero(base, memory):
    batch = batch_of(base)

    def states():
        with torch.no_grad():
            return base.model(encoder_outputs=(batch.encoded,), attention_mask=batch.mask, decoder_input_ids=batch.inputs).logits

    method, module = get_method("memory_adapter"), module_for(base, memory, trained=True)
    weights = {key: value.clone() for key, value in base.model.state_dict().items()}
    before = states()
    with method.attach(base, module):
        during = states()
    with method.attach(base, module, 0.0):
        assert torch.equal(states(), before)
    assert torch.equal(states(), before)
    assert not torch.equal(during, before)
    assert all(torch.equal(value, weights[key]) for key, value in base.model.state_dict().items())
    assert not any(layer.self_attn._forward_hooks or layer.encoder_attn._forward_hooks for layer in base.decoder_layers)


def test_detached_when_the_work_inside_fails(base, memory):
    method, module = get_method("memory_adapter"), module_for(base, memory)
    with pytest.raises(ZeroDivisionError), method.attach(base, module):
        raise ZeroDivisionError
    assert not any(layer.self_attn._forward_hooks for layer in base.decoder_layers)


def test_strength_moves_from_base_to_plugin(base, memory):
    reader = reader_with()
    anchor, query = torch.randn(1, 2, D, dtype=torch.float64), torch.randn(1, 2, D, dtype=torch.float64)
    full = reader(anchor, query)
    assert torch.allclose(reader(anchor, query, 0.5), (anchor + full) / 2, atol=1e-12)


def test_only_readers_are_trained_and_the_keys_are_exact(base, memory):
    module = module_for(base, memory)
    parts = ["query.weight", "key.weight", "value.weight", "gate_hidden.weight", "gate_out.weight", "scale"]
    expected = {f"layers.{i}.{position}.{part}" for i in range(3) for position in ("self_attn", "encoder_attn") for part in parts}
    assert set(module.state_dict()) == expected == {name for name, _ in module.named_parameters()}
    with get_method("memory_adapter").attach(base, module):
        get_method("memory_adapter").loss(base, module, batch_of(base)).total.backward()
    assert all(p.grad is None for p in base.model.parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in module.named_parameters() if n.endswith("scale"))


def test_gradients_reach_every_weight_once_the_scale_has_moved(base, memory):
    module = module_for(base, memory, trained=True)
    with get_method("memory_adapter").attach(base, module):
        get_method("memory_adapter").loss(base, module, batch_of(base)).total.backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in module.parameters())


def test_chosen_layers_and_places(base, memory):
    module = module_for(base, memory, layers=(1,), places=("encoder_attn",))
    assert [(layer, position) for layer, position, _ in module.readers()] == [(1, "encoder_attn")]


def test_projection_is_dropped_in_training_mode(base, memory):
    module = module_for(base, memory, trained=True)
    get_method("memory_adapter").prepare_for_inference(module)
    assert all(reader.keys is not None for _, _, reader in module.readers())
    module.train()
    assert all(reader.keys is None for _, _, reader in module.readers())


def test_two_plugins_over_one_base(base, memory):
    method = get_method("memory_adapter")
    plugin = Plugin(method, module_for(base, memory, trained=True), {})
    other = Plugin(method, module_for(base, memory, layers=(0,), trained=True), {})
    text = [SENTENCES[2]]
    alone = [score(base, text, plugin), score(base, text, other)]
    assert alone[0] != alone[1]
    assert [score(base, text, plugin), score(base, text, other), score(base, text, plugin)] == [*alone, alone[0]]


def test_reads_name_rows_of_the_layers_memory(base, memory):
    module = module_for(base, memory, trained=True)
    rows = get_method("memory_adapter").attributions(base, module, *SENTENCES[2], top=2)
    assert {row["layer"] for row in rows} == {0, 1, 2}
    for row in rows:
        weights = [item["weight"] for item in row["items"]]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) <= 1.0 + 1e-5
        assert all(0 <= item["row"] < memory.sizes[row["layer"]] for item in row["items"])
    assert all(reader.recorded is None for _, _, reader in module.readers())


def test_base_dropout_is_undone(base, memory):
    method, module = get_method("memory_adapter"), module_for(base, memory, base_dropout=0.3, trained=True)
    with method.attach(base, module):
        torch.manual_seed(1)
        first = float(method.loss(base, module, batch_of(base)).total)
        torch.manual_seed(2)
        assert float(method.loss(base, module, batch_of(base)).total) != first
    assert all(layer.dropout == 0.0 and not layer.training for layer in base.decoder_layers)


def test_the_registry_lists_what_each_method_needs():
    assert "memory_adapter" in method_names()
    record = get_method("memory_adapter").capabilities.to_mapping()
    assert record["needs_phrases"]
    assert not record["needs_bilingual"]
    assert record["offers_strength"]
