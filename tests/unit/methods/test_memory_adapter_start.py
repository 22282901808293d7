"""An adapter that starts from the base reads as the base would; the base's output stays what it was."""

import pytest
import torch

from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method
from engine.methods.memory_adapter.config import RELEASED_CODE, MemoryAdapterConfig
from engine.methods.memory_adapter.init import QUERY_STD
from tests.bases import SENTENCES


@pytest.fixture(scope="module")
def memory(base, tmp_path_factory):
    pairs = [PhrasePair(i % 2, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]  # the third layer has none
    return record(base, pairs, tmp_path_factory.mktemp("memory") / "memory.safetensors")


def module_for(base, memory, **options):
    torch.manual_seed(3)
    config = MemoryAdapterConfig(**options)
    return get_method("memory_adapter").build(base, Artefacts(memory=memory), config)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.1}, {"scale_query": True}])
def test_a_phrase_reads_itself_most_and_scores_spread_alike_at_every_temperature(base, memory, options):
    module = module_for(base, memory, **options)
    for layer in (0, 1):
        reader = module.layers[str(layer)]["self_attn"]
        scores = reader.query(reader.memory) @ reader.key.weight @ reader.memory.T * reader.inverse_temperature
        assert scores.argmax(1).tolist() == list(range(len(reader.memory)))
        assert scores.std(1).mean().item() == pytest.approx(QUERY_STD, rel=1e-3)
        assert torch.equal(reader.value(reader.memory), reader.memory)


def test_source_memory_is_read_by_the_weights_of_the_base_s_own_attention(base, memory):
    module = module_for(base, memory)
    for layer in (0, 1):
        attention, reader = base.decoder_layers[layer].encoder_attn, module.layers[str(layer)]["encoder_attn"]
        mean = reader.memory.mean(0)
        assert torch.allclose(reader.value(mean), attention.out_proj(attention.v_proj(mean)), atol=1e-5)
        query = torch.randn(4, base.d_model)
        mine = (reader.query(query) @ reader.key.weight) @ reader.memory.T * reader.inverse_temperature
        q, k = (query @ attention.q_proj.weight.T), reader.memory @ attention.k_proj.weight.T
        assert torch.allclose(mine, q @ k.T * attention.head_dim**-0.5, atol=1e-4)


def test_a_layer_without_phrases_and_the_released_code_start_at_random(base, memory):
    started, random = module_for(base, memory), module_for(base, memory, init="random")
    same = {key for key, value in random.state_dict().items() if torch.equal(value, started.state_dict()[key])}
    assert {key for key in same if key.startswith("layers.2.")} == {k for k in random.state_dict() if "layers.2." in k}
    assert "layers.0.self_attn.query.weight" not in same
    assert MemoryAdapterConfig(**RELEASED_CODE).init == "random"


def test_an_untrained_adapter_leaves_the_output_alone(base, memory):
    text = [SENTENCES[0][0]]
    before = score(base, [(SENTENCES[0][0], SENTENCES[0][1])])
    with get_method("memory_adapter").attach(base, module_for(base, memory)):
        assert score(base, [(SENTENCES[0][0], SENTENCES[0][1])]) == before
    assert translate(base, text) == translate(base, text)
