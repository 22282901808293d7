"""Domain mixing against slow float64 references of the paper's equations, and what users rely on."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.general_text import general_domain
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.errors import BundleError, CorpusError
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.domain_mixing.domains import with_general
from engine.methods.domain_mixing.fit import domain_weights, fit_layer
from engine.methods.domain_mixing.input_hooks import proportion_layer_counts
from engine.methods.domain_mixing.layers import MixedDelta, ProportionLayer, mix, word_losses
from engine.methods.domain_mixing.model import ABOUT, TENSORS, ProportionModel
from engine.methods.domain_mixing.module import MixingModule
from engine.methods.domain_mixing.proportions import proportions
from engine.methods.domain_mixing.states import real_tokens, run
from engine.methods.interface import Batch
from engine.plugins import Plugin
from tests.bases import ROOT, SENTENCES, tiny_base, tiny_pair

K, EPSILON = 3, 0.1
NAMES = ["news", "talks", "law"]
METHOD = get_method("domain_mixing")


def random_model(base, seed=0, domains=NAMES, epsilon=EPSILON):
    """Proportions that are no fit of anything, but differ from word to word."""
    torch.manual_seed(seed)
    layers = {}
    for side, count in proportion_layer_counts(base).items():
        layers[side] = [ProportionLayer(base.d_model, len(domains)).to(base.dtype) for _ in range(count)]
        for layer in layers[side]:
            for value in (layer.weight, layer.bias, layer.mean):
                value.data = torch.randn_like(value) * 0.5
            layer.spread.data = torch.rand_like(layer.spread) + 0.5
    return ProportionModel(
        list(domains), epsilon, layers, [0.5, 1.0, 1.5][: len(domains)], 0.01, base_fingerprint=base.fingerprint()
    )


@pytest.fixture(scope="module")
def folder(base, tmp_path_factory):
    result = tmp_path_factory.mktemp("proportions")
    random_model(base).save(result)
    return result


def module_for(base, folder, *, trained=False, **options):
    torch.manual_seed(3)
    artefacts = Artefacts(files={name: folder / name for name in (TENSORS, ABOUT)})
    module = METHOD.build(base, artefacts, DomainMixingConfig(**options))
    if trained:
        torch.manual_seed(4)
        for parameter in module.experts.parameters():
            parameter.data += torch.randn_like(parameter) * 0.2
    return module


def batch_of(base, domains=("news", "law")):
    pairs = Pairs.encode(base, [SentencePair(a, b, domains[i % len(domains)]) for i, (a, b) in enumerate(SENTENCES)])
    inputs, labels = base.pad_batch(pairs.sources), base.pad_batch(pairs.labels)
    mask = (inputs != base.pad).long()
    return Batch(inputs, mask, None, base.shift_right(labels), labels, 0, pairs, range(len(SENTENCES)))


# -- the paper's equations


def paper_proportions(layer, x, epsilon):
    """D(x) = (1 - ε) softmax(R x) + ε / k of one word, in float64, number by number."""
    weight, bias, mean, spread = (getattr(layer, part).detach().double() for part in ("weight", "bias", "mean", "spread"))
    scores = [
        sum(float(weight[j, i]) * (float(x[i]) - float(mean[i])) / float(spread[i]) for i in range(len(x))) + float(bias[j])
        for j in range(len(weight))
    ]
    powers = [math.exp(score - max(scores)) for score in scores]
    return [(1 - epsilon) * power / sum(powers) + epsilon / len(weight) for power in powers]


def test_proportions_are_the_papers(base):
    layer = random_model(base).layers["decoder"][1]
    states = torch.randn(4, base.d_model)
    result = mix(layer(states), EPSILON)
    for word, row in zip(states, result, strict=True):
        assert row.tolist() == pytest.approx(paper_proportions(layer, word, EPSILON), abs=1e-6)
    assert torch.allclose(result.sum(-1), torch.ones(4))
    assert float(result.min()) >= EPSILON / K - 1e-6
    assert torch.allclose(mix(layer(states), 1.0), torch.full((4, K), 1 / K))


def full_delta(expert, j):
    """ΔW_j of an expert as a matrix (out, in), float64."""
    if not expert.rank:
        inputs = expert.delta.shape[1] // K
        return expert.delta[:, j * inputs : (j + 1) * inputs].double()
    rows = slice(j * expert.rank, (j + 1) * expert.rank)
    return expert.up[:, rows].double() @ expert.down[rows].double()


@pytest.mark.parametrize("rank", [0, 2])
def test_a_mixed_map_is_the_sum_over_domains(rank):
    torch.manual_seed(1)
    expert = MixedDelta(5, 7, K, rank)
    x, shares = torch.randn(2, 4, 5), torch.rand(2, 4, K).softmax(-1)
    assert torch.equal(expert(x, shares), torch.zeros(2, 4, 7)), "it starts as no change"
    for parameter in expert.parameters():
        parameter.data = torch.randn_like(parameter)
    result = expert(x, shares)
    for b in range(2):
        for t in range(4):
            expected = sum(shares[b, t, j].double() * (full_delta(expert, j) @ x[b, t].double()) for j in range(K))
            assert torch.allclose(result[b, t].double(), expected, atol=1e-5)


def paper_attention(module, attention, names, queries, keys, query_shares, key_shares):
    """One attention of the paper, word by word: each of its four maps is Σ_j D_j W_j with W_j = W + ΔW_j."""

    def mapped(name, x, shares):
        linear, expert = (getattr(attention, name), module.expert(*names, name) if isinstance(names, tuple) else names[name])
        out = linear.bias.double().clone()
        for j in range(K):
            out = out + shares[j] * ((linear.weight.double() + full_delta(expert, j)) @ x)
        return out

    heads, size = attention.num_heads, attention.head_dim
    q = [mapped("q_proj", x, d) for x, d in zip(queries, query_shares, strict=True)]
    k = [mapped("k_proj", x, d) for x, d in zip(keys, key_shares, strict=True)]
    v = [mapped("v_proj", x, d) for x, d in zip(keys, key_shares, strict=True)]
    rows = []
    for i, shares in enumerate(query_shares):
        parts = []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = torch.stack([q[i][part] @ other[part] for other in k]) / math.sqrt(size)
            weights = scores.softmax(0)
            parts.append(sum(w * other[part] for w, other in zip(weights, v, strict=True)))
        rows.append(mapped("out_proj", torch.cat(parts), shares))
    return torch.stack(rows)


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize(("side", "block"), [("encoder", "self_attn"), ("decoder", "encoder_attn")])
def test_attention_mixes_all_four_maps_of_each_word(base, folder, rank, side, block):
    module = module_for(base, folder, trained=True, rank=rank)
    layers = base.model.get_encoder().layers if side == "encoder" else base.decoder_layers
    attention = getattr(layers[1], block)
    seen = {}

    def keep(_, args, kwargs, output):
        seen["queries"] = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
        seen["output"] = output[0]

    sources = base.pad_batch(base.encode([SENTENCES[0][0]]))
    labels = base.pad_batch(base.encode_target([SENTENCES[0][1]]))
    handle = attention.register_forward_hook(keep, with_kwargs=True)
    try:
        with METHOD.attach(base, module), torch.no_grad():
            result = {name: states for name, _, states in run(base, sources, labels)}
    finally:
        handle.remove()
    query_shares = [paper_proportions(module.proportion_layers(side)[1], x, EPSILON) for x in result[side][1][0]]
    if block == "self_attn":
        keys, key_shares = seen["queries"][0], query_shares
    else:
        keys = result["encoder"][-1][0]
        key_shares = [paper_proportions(module.proportion_layers("encoder")[-1], x, EPSILON) for x in keys]
    experts = {name: module.expert(side, 1, f"{block}.{name}") for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
    expected = paper_attention(module, attention, experts, seen["queries"][0].double(), keys.double(), query_shares, key_shares)
    assert torch.allclose(seen["output"][0].double(), expected, atol=1e-4)


def test_feed_forward_is_an_option(base, folder):
    assert not any("fc1" in key for key in module_for(base, folder).state_dict())
    module = module_for(base, folder, trained=True, feed_forward=True)
    layer = base.model.get_encoder().layers[0]
    x = torch.randn(1, 3, base.d_model)
    with torch.no_grad():
        plain = layer.fc1(x)
        with METHOD.attach(base, module):
            layer(torch.randn(1, 3, base.d_model), None)  # the layer's input sets the proportions
            changed = layer.fc1(x)
    assert not torch.equal(plain, changed)
    assert torch.equal(layer.fc1(x), plain)


def test_mixing_loss_is_the_papers(base, folder):
    module, batch = module_for(base, folder, trained=True), batch_of(base)
    with METHOD.attach(base, module), torch.no_grad():
        loss = METHOD.loss(base, module, batch)
        result = {side: (ids, states) for side, ids, states in run(base, batch.sources, batch.labels)}
    total, ridge, count = 0.0, 0.0, 0
    for side, (ids, states) in result.items():
        real = real_tokens(base, ids)
        if side == "encoder":
            real &= batch.mask.bool()
        for index, layer in enumerate(module.proportion_layers(side)):
            parts = [
                -math.log(paper_proportions(layer, states[index][b, t], EPSILON)[j]) * [0.5, 1.0, 1.5][j]
                for b in range(len(ids))
                for j in [NAMES.index(("news", "law")[b % 2])]
                for t in range(ids.shape[1])
                if real[b, t]
            ]
            total += sum(parts) / len(parts)
            ridge += 0.01 / 2 * float(layer.weight.double().square().sum())
            count += 1
    assert loss.parts["mixing"] == pytest.approx((total + ridge) / count, rel=1e-4)
    assert float(loss.total) == pytest.approx(loss.parts["nll"] + loss.parts["mixing"], rel=1e-5)


def test_neither_loss_reaches_the_others_weights(base, folder):
    batch = batch_of(base)
    for weight, trained, left in ((0.0, "experts", "proportions"), (1.0, "proportions", "experts")):
        module = module_for(base, folder, trained=True, mix_weight=weight)
        with METHOD.attach(base, module):
            loss = METHOD.loss(base, module, batch)
            total = loss.total if not weight else loss.total - nll_of(base, module, batch)
            total.backward()
        moved = getattr(module, trained).parameters()
        assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in moved)
        if trained == "experts":
            assert all(not p.grad.any() for p in getattr(module, left).parameters() if p.grad is not None)
        else:
            largest = max(float(p.grad.abs().max()) for p in getattr(module, left).parameters())
            assert largest < 1e-4, "what is left is the difference of two equal likelihoods"
        assert all(p.grad is None for p in base.model.parameters())


def nll_of(base, module, batch):
    from engine.methods.losses import likelihood

    return likelihood(base, METHOD.log_probabilities(base, module, batch), batch)


def test_words_of_unknown_domains_and_marks_take_no_part(base, folder):
    module = module_for(base, folder)
    batch, other = batch_of(base, ("news",)), batch_of(base, ("news", "nowhere"))
    with METHOD.attach(base, module), torch.no_grad():
        assert METHOD.loss(base, module, batch).parts["mixing"] != METHOD.loss(base, module, other).parts["mixing"]
        nobody = METHOD.loss(base, module, batch_of(base, ("nowhere",))).parts["mixing"]
    ridges = [layer.weight.square().sum() * 0.005 for side in ("encoder", "decoder") for layer in module.proportion_layers(side)]
    assert nobody == pytest.approx(float(sum(ridges) / len(ridges)), rel=1e-4)
    ids = base.pad_batch(base.encode(["The rain stopped.", "He said nothing at all to anybody."]))
    assert int(real_tokens(base, ids).sum()) < int((ids != base.pad).sum())


# -- what every plugin promises, where it is special here


@pytest.mark.parametrize("options", [{}, {"rank": 0}, {"feed_forward": True}])
def test_untrained_it_is_the_base_bit_for_bit(base, folder, options):
    module, batch = module_for(base, folder, **options), batch_of(base)
    with torch.no_grad():
        before = base.model(input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs).logits
        with METHOD.attach(base, module):
            during = base.model(input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs).logits
    assert torch.equal(before, during)
    assert not any(submodule._forward_hooks or submodule._forward_pre_hooks for submodule in base.model.modules())


def test_state_dict_is_what_is_trained(base, folder):
    module = module_for(base, folder, rank=2)
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}
    kinds = {key.split(".")[-1] for key in module.state_dict()}
    assert kinds == {"weight", "bias", "down", "up"}
    maps = 4 * 2 + 8 * 3  # two encoder and three decoder layers
    assert sum(key.endswith(".up") for key in module.state_dict()) == maps


def test_full_matrices_move_slowly_and_proportions_as_ever(base, folder):
    from engine.training.loop import make_optimizer
    from engine.training.options import TrainingOptions

    def speeds(**options):
        module = module_for(base, folder, **options)
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        groups = make_optimizer(METHOD, module, TrainingOptions()).param_groups
        return {(names[id(parameter)].split(".")[0], group["speed"]) for group in groups for parameter in group["params"]}

    assert speeds(rank=0) == {("proportions", 1.0), ("experts", 0.1)}
    assert speeds(rank=0, full_speed=0.5) == {("proportions", 1.0), ("experts", 0.5)}
    assert speeds(rank=2) == {("proportions", 1.0), ("experts", 1.0)}


def test_strength_scales_the_experts(base, folder):
    module = module_for(base, folder, trained=True)
    plugin = Plugin(METHOD, module, {})
    scores = [sum(s for s, _ in score(base, SENTENCES, plugin, strength=x)) for x in (0.0, 0.5, 1.0)]
    assert scores[0] == sum(s for s, _ in score(base, SENTENCES))
    assert len(set(scores)) == 3


def test_beams_and_cached_steps_mix_as_teacher_forcing_does(base, folder):
    module = module_for(base, folder, trained=True)
    rows = base.encode([a for a, _ in SENTENCES[:3]])
    inputs = base.pad_batch(rows)
    mask = (inputs != base.pad).long()
    with METHOD.attach(base, module), torch.no_grad():
        for beams in (1, 3):
            output = base.model.generate(
                input_ids=inputs, attention_mask=mask, num_beams=beams, max_new_tokens=8, do_sample=False,
                output_scores=True, return_dict_in_generate=True, length_penalty=0.0,
            )  # fmt: skip
            logits = base.model(input_ids=inputs, attention_mask=mask, decoder_input_ids=output.sequences[:, :-1]).logits
            log_p = logits.float().log_softmax(-1)
            if beams == 1:
                ends = output.sequences[:, 1:] == base.pad
                best = logits.argmax(-1)
                assert torch.equal(best[:, :-1][~ends[:, :-1]], output.sequences[:, 1:-1][~ends[:, :-1]])
                continue
            for row in range(3):
                words = output.sequences[row, 1:]
                word_scores = log_p[row].gather(1, words[:, None])[:, 0]
                last = next((i for i, w in enumerate(words.tolist()) if w == 0), len(words) - 1)
                selected = word_scores[: last + 1] if last < len(words) - 1 else word_scores[:-1]
                total = float(output.sequences_scores[row])
                assert float(selected.sum()) == pytest.approx(total, abs=0.05) or last == len(words) - 1


def test_reads_are_the_decoders_proportions(base, folder):
    module = module_for(base, folder, trained=True)
    rows = METHOD.attributions(base, module, *SENTENCES[2], top=2)
    assert {row["layer"] for row in rows} == {0, 1, 2}
    tokens = base.tokenizer.convert_ids_to_tokens(base.encode_target([SENTENCES[2][1]])[0])
    assert all(tokens[row["position"]] == row["token"] for row in rows)
    for row in rows:
        weights = [item["weight"] for item in row["items"]]
        assert weights == sorted(weights, reverse=True)
        assert {item["text"] for item in row["items"]} <= set(NAMES)
        assert len(weights) == 2


def test_a_trained_plugin_gives_the_proportions_of_any_sentence(base, folder):
    """They are read with the plugin attached, since its experts change the states of all layers but the first."""
    module = module_for(base, folder, trained=True)
    plugin, model = Plugin(METHOD, module, {}), module.proportion_model()
    result = proportions(base, model, SENTENCES[2][1], source=SENTENCES[2][0], plugin=plugin)
    without = proportions(base, model, SENTENCES[2][1], source=SENTENCES[2][0])
    rows = METHOD.attributions(base, module, *SENTENCES[2], top=K)
    for layer in range(3):
        read = [{item["text"]: item["weight"] for item in row["items"]} for row in rows if row["layer"] == layer]
        mean = [sum(weights[name] for weights in read) / len(read) for name in NAMES]
        pieces = [word["layers"][layer] for word in result["words"]]
        assert len(pieces) <= len(read)
        if len(pieces) == len(read):
            assert result["layer_means"][layer] == pytest.approx(mean, abs=2e-3)
    assert result["layer_means"][0] == without["layer_means"][0]
    assert result["layer_means"][2] != without["layer_means"][2]
    assert proportions(base, model, SENTENCES[2][0], "encoder", plugin=plugin)["layers"] == ["1", "2", "output"]


@pytest.mark.parametrize("family", ["M2M100", "MBart"])
def test_layouts_with_layer_norms_before(family):
    """Pre-norm bases: proportions from the residual stream at a layer's input, maps on what the layer norm gives."""
    import transformers

    config = getattr(transformers, f"{family}Config")(
        vocab_size=60, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=40,
    )  # fmt: skip
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config).eval().requires_grad_(False)
    base = SimpleNamespace(model=model, decoder_layers=model.get_decoder().layers, d_model=16, dtype=torch.float32)
    base.fingerprint = lambda: "none"
    inputs, before = torch.randint(4, 60, (2, 7)), torch.randint(4, 60, (2, 5))

    def logits():
        with torch.no_grad():
            return model(input_ids=inputs, decoder_input_ids=before).logits

    module = MixingModule(base, random_model(base), DomainMixingConfig(rank=2, feed_forward=True))
    plain = logits()
    with METHOD.attach(base, module):
        assert torch.equal(logits(), plain)
    for parameter in module.experts.parameters():
        parameter.data += torch.randn_like(parameter) * 0.3
    with METHOD.attach(base, module):
        first = logits()
        module.proportion_layers("encoder")[-1].bias.data += torch.tensor([3.0, 0.0, -3.0])
        assert not torch.equal(first, logits()), "the encoder's output has proportions of its own"
    assert not torch.equal(first, plain)
    assert torch.equal(logits(), plain)


def test_half_precision_bases(base, folder):
    module = module_for(base, folder, trained=True).to(torch.bfloat16)
    states = torch.randn(1, 3, base.d_model, dtype=torch.bfloat16)
    shares = module.shares("decoder", 0, states)
    assert shares.dtype == torch.float32
    assert module.expert("decoder", 0, "self_attn.q_proj")(states, shares).dtype == torch.bfloat16
    inexact = module_for(base, folder, trained=True)
    assert inexact.expert("decoder", 0, "self_attn.q_proj")(states, shares).dtype == torch.float32


# -- fitting


def test_the_fit_is_at_the_least_loss():
    torch.manual_seed(2)
    domain = torch.arange(300) % K
    centres = torch.randn(K, 6)
    states = centres[domain] + torch.randn(300, 6) * 1.5 + 10
    weights = domain_weights([100.0, 100.0, 100.0], True)
    layer = fit_layer(states, domain, K, epsilon=0.05, ridge=0.01, weights=weights).double()
    x = ((states.double() - layer.mean) / layer.spread).clone()
    logits = x @ layer.weight.T + layer.bias
    loss = word_losses(logits, domain, 0.05).mean() + 0.005 * layer.weight.square().sum()
    loss.backward()
    assert float(layer.weight.grad.norm()) < 2e-3
    assert float(loss.detach()) < math.log(K)
    right = (mix(logits, 0.05).argmax(-1) == domain).double().mean()
    assert float(right) > 0.7


def test_a_large_domain_does_not_take_all_words():
    assert domain_weights([900.0, 100.0], True) == pytest.approx([1000 / 1800, 5.0])
    assert domain_weights([900.0, 100.0], False) == [1.0, 1.0]
    torch.manual_seed(0)
    domain = (torch.arange(1000) % 10 == 0).long()
    states = torch.randn(1000, 4)  # nothing tells the domains apart
    shares = {
        balance: mix(
            fit_layer(states, domain, 2, epsilon=0.0, ridge=1.0, weights=domain_weights([900.0, 100.0], balance))(states), 0.0
        ).mean(0)
        for balance in (True, False)
    }
    assert shares[True][0].item() == pytest.approx(0.5, abs=0.05)
    assert shares[False][0].item() == pytest.approx(0.9, abs=0.05)


def test_a_model_is_saved_and_found_again_and_checked(base, folder, tmp_path):
    before, after = random_model(base), ProportionModel.load(folder, base)
    assert after.to_mapping() == before.to_mapping()
    states = [torch.randn(5, base.d_model) for _ in range(proportion_layer_counts(base)["decoder"])]
    assert torch.equal(before.proportions("decoder", states), after.proportions("decoder", states))
    with pytest.raises(BundleError, match="fitted on another base"):
        ProportionModel.load(folder, tiny_base(seed=5))
    with pytest.raises(BundleError, match=f"contains no {TENSORS}"):
        ProportionModel.load(tmp_path)
    (tmp_path / TENSORS).write_bytes((folder / TENSORS).read_bytes())
    (tmp_path / ABOUT).write_text('{"domains": 3}', encoding="utf-8")
    with pytest.raises(BundleError, match="are invalid"):
        ProportionModel.load(tmp_path, base)
    (tmp_path / ABOUT).write_bytes((folder / ABOUT).read_bytes())
    (tmp_path / TENSORS).write_bytes(b"nothing")
    with pytest.raises(BundleError, match="cannot be read"):
        ProportionModel.load(tmp_path, base)


# -- the general domain


def test_one_domain_gets_the_general_one_and_several_do_not():
    assets = ROOT / "assets"
    single = with_general({"samples": ["Ich bin da."]}, "de", assets, "auto", ["Ich bin da."])
    assert list(single) == ["samples", "general"]
    assert len(single["general"]) > 250
    two = {"a": ["x"], "b": ["y"]}
    assert with_general(two, "de", assets, "auto", []) == two
    assert list(with_general(two, "de", assets, "always", [])) == ["a", "b", "general"]
    assert list(with_general({"general": ["x"]}, "en", assets, "auto", [])) == ["general", "bundled general"]
    with pytest.raises(CorpusError, match="general=never"):
        with_general({"a": ["x"]}, "de", assets, "never", [])
    with pytest.raises(CorpusError, match="none is bundled for French"):
        with_general({"a": ["x"]}, "fr", assets, "auto", [])
    with pytest.raises(CorpusError, match=r"none is bundled for Chinese \(zh-Hant\)"):
        general_domain(assets, "zh-Hant")
    first = general_domain(assets, "en")[0]
    assert first not in general_domain(assets, "en", exclude=[first])


def test_prepare_encode_and_build_with_one_domain(tmp_path, monkeypatch):
    """The general sample is translated back once and trained on beside the user's pairs; validation is the user's alone."""
    from engine.corpora import Segment
    from engine.decoding import resumable

    calls = []

    def fake(base, texts, partial, progress):
        calls.append(len(texts))
        return [f"Source {i}." for i in range(len(texts))]

    monkeypatch.setattr(resumable, "back_translate_all", fake)
    pair = tiny_pair()
    pairs = [SentencePair(a, b) for a, b in SENTENCES] * 2
    samples = Samples(
        pair, [Segment(sentence.target) for sentence in pairs], [], tmp_path, load_settings(),
        sentence_pairs={"train": pairs, "valid": pairs[:3]},
    )  # fmt: skip
    config = DomainMixingConfig(words=200, ridge=0.01)
    artefacts = METHOD.prepare(samples, config, Progress())
    again = METHOD.prepare(samples, config, Progress())
    assert calls == [40]
    assert again.files == artefacts.files
    module = METHOD.build(pair.forward, artefacts, config)
    assert module.domains == ["samples", "general"]
    train = METHOD.encode(pair.forward, samples, "train", Progress())
    assert {sentence.domain for sentence in train.sentences} == {"", "general"}
    assert len(METHOD.encode(pair.forward, samples, "valid", Progress())) == 3
    opened = METHOD.open(Path(tmp_path), pair.forward, config)
    assert set(opened.files) == {TENSORS, ABOUT}
