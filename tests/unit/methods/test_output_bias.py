"""The output bias: full and factored, a speaker's own in training, the base's own bias left in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora import Segment
from engine.corpora.types import SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError, OptionError
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.losses import log_probabilities
from engine.methods.output_bias.config import ExtremeConfig
from engine.plugins import Plugin, PluginStack
from engine.training.batches import make_batch
from tests import layer_checks as checks
from tests.bases import SENTENCES, tiny_base, tiny_pair
from tests.reference_transformer import FAMILIES, PAIR, double_base, family_base, scattered, tokens

NAME = "extreme"
DOMAINS = ["letters", "", "law"]


def domains_file(folder: Path, names: Any = None) -> Path:
    file = folder / "domains.json"
    file.write_text(json.dumps({"domains": DOMAINS if names is None else names}), encoding="utf-8")
    return file


def with_domains(base: Any, folder: Path, **options: Any) -> tuple[Any, Any]:
    method = get_method(NAME)
    config = ExtremeConfig(per_domain=True, **options)
    return method, method.build(base, Artefacts(files={"domains.json": domains_file(folder)}), config)


def pairs_of(base: Any, domains: list[str]) -> Pairs:
    rows = [SentencePair(a, b, domain) for (a, b), domain in zip(SENTENCES, domains, strict=False)]
    return Pairs.encode(base, rows)


def log_softmax(logits: Tensor) -> Tensor:
    """Row by row, in float64: l - log Σ exp l."""
    return torch.stack([row - torch.log(torch.exp(row - row.max()).sum()) - row.max() for row in logits.double()])


def speakers_bias(module: Any, speaker: int) -> Tensor:
    """b_s: a row of B, or of S B̃, summed by hand."""
    if module.rank is None:
        return module.bias[speaker]
    vector = module.speakers[speaker]
    return sum(vector[i] * module.words[i] for i in range(module.rank))  # type: ignore[return-value]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [None, 3])
def test_the_bias_is_added_before_the_softmax_beside_the_bases_own(family: str, rank: int | None) -> None:
    base = double_base(family)
    if hasattr(base.model, "final_logits_bias"):
        base.model.final_logits_bias.normal_()
    method, module = checks.make(NAME, base, rank=rank)
    scattered(module)
    sources, inputs = tokens(base)

    def logits() -> Tensor:
        with torch.no_grad():
            return base.model(input_ids=sources, decoder_input_ids=inputs, use_cache=False).logits[0]  # (T, V)

    plain = logits()
    for strength in (1.0, 0.5):
        with method.attach(base, module, strength):
            assert torch.allclose(logits(), plain + strength * speakers_bias(module, 0), atol=1e-9)
            total, _ = score(base, [PAIR])[0]
        labels = base.pad_batch(base.encode_target([PAIR[1]]))[0]  # (T,)
        expected = log_softmax(plain + strength * speakers_bias(module, 0))
        assert total == pytest.approx(float(expected[range(len(labels)), labels].detach().sum()), abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [None, 5])
def test_untrained_or_off_it_is_the_base(family: str, rank: int | None) -> None:
    base = family_base(family)
    method, module = checks.make(NAME, base, rank=rank)
    before = score(base, SENTENCES)
    with method.attach(base, module):
        assert score(base, SENTENCES) == before
    scattered(module).float()
    with method.attach(base, module, 0.0):
        assert score(base, SENTENCES) == before

    def failing() -> None:
        with method.attach(base, module):
            assert score(base, SENTENCES) != before
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        failing()
    assert not checks.hooks(base)
    assert score(base, SENTENCES) == before


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [None, 4])
def test_it_learns_with_all_its_weights(family: str, rank: int | None) -> None:
    checks.check_learning(NAME, family, rank=rank)


@pytest.mark.parametrize("rank", [None, 2])
def test_in_training_each_sentence_gets_its_speakers_bias(rank: int | None, tmp_path: Path) -> None:
    base = tiny_base(layers=2)
    base.model.final_logits_bias.normal_()
    method, module = with_domains(base, tmp_path, rank=rank)
    scattered(module).float()
    owners = ["law", "letters", "law", "", "unheard of", "letters", "", "law"]
    pairs = pairs_of(base, owners)
    rows = [5, 0, 4, 3, 2]
    plain = make_batch(base, method, module, pairs, rows, 0)
    without = log_probabilities(base, plain)  # (M, V), nothing is attached
    with method.attach(base, module), torch.no_grad():
        batch = make_batch(base, method, module, pairs, rows, 0)
        result = method.log_probabilities(base, module, batch)  # (M, V)
    mean = sum(speakers_bias(module, s) for s in range(3)) / 3
    added = []
    for row in rows:
        bias = speakers_bias(module, DOMAINS.index(owners[row])) if owners[row] in DOMAINS else mean
        added += [bias] * len(pairs.labels[row])
    assert torch.allclose(result.double(), log_softmax(without + torch.stack(added)).double(), atol=1e-4)
    assert module.current is None  # nothing is left of the batch


@pytest.mark.parametrize("rank", [None, 2])
def test_translations_get_the_chosen_domains_bias_or_the_mean(rank: int | None, tmp_path: Path) -> None:
    base = tiny_base(layers=2)
    _, module = with_domains(base, tmp_path, rank=rank, domain="law")
    scattered(module).float()
    assert torch.allclose(module.used(), speakers_bias(module, 2), atol=1e-6)
    _, other = with_domains(base, tmp_path, rank=rank)
    other.load_state_dict(module.state_dict())
    mean = sum(speakers_bias(module, s) for s in range(3)) / 3
    assert torch.allclose(other.used(), mean, atol=1e-6)


def test_a_speakers_words_only_pull_at_its_own_bias(tmp_path: Path) -> None:
    base = tiny_base(layers=2)
    method, module = with_domains(base, tmp_path)
    pairs = pairs_of(base, ["law"] * 4)
    with method.attach(base, module):
        batch = make_batch(base, method, module, pairs, [0, 1, 2, 3], 0)
        method.loss(base, module, batch).total.backward()
    moved = module.bias.grad.abs().sum(1)  # (S,)
    assert moved[2] > 0
    assert moved[0] == moved[1] == 0


def test_decay_is_the_biases_sum_of_squares() -> None:
    base = tiny_base(layers=2)
    method, module = checks.make(NAME, base, decay=0.25)
    scattered(module).float()
    pairs = Pairs.encode(base, SENTENCES)
    with method.attach(base, module):
        loss = method.loss(base, module, make_batch(base, method, module, pairs, [0, 1], 0))
    size = sum(float(b) ** 2 for b in module.bias.detach().flatten().tolist())
    assert loss.parts["size"] == pytest.approx(size, rel=1e-4)
    assert loss.total.item() == pytest.approx(loss.parts["nll"] + 0.25 * size, rel=1e-4)


def test_a_large_bias_on_a_word_makes_beam_search_write_it() -> None:
    base = tiny_base(layers=2)
    method, module = checks.make(NAME, base)
    word = base.encode_target(["雨"])[0]
    with torch.no_grad():
        module.bias[0, word[0]] = 40.0
    plugin = Plugin(method, module, {})
    texts, fast = ["The rain stopped.", "He said nothing."], Decoding(beam=2, max_length_ratio=0.5)
    before = translate(base, texts, decoding=fast)
    written = translate(base, texts, plugin, decoding=fast)
    piece = base.decode([[word[0]]])[0]
    assert all(text.replace(" ", "").replace(piece, "") == "" for text in written if piece)
    assert written != before
    assert translate(base, texts, PluginStack([plugin, plugin]), decoding=fast) == written
    assert translate(base, texts, decoding=fast) == before


def test_half_precision() -> None:
    base = tiny_base(layers=2)
    base.model.to(torch.bfloat16)
    before = score(base, SENTENCES[:2])
    method, module = checks.make(NAME, base, rank=3)
    scattered(module).float()
    for kind in (torch.float32, torch.bfloat16):
        module.to(kind)
        with method.attach(base, module):
            assert score(base, SENTENCES[:2]) != before


def test_it_has_the_weights_of_the_card(tmp_path: Path) -> None:
    base = tiny_base(layers=2)
    words = base.model.get_output_embeddings().weight.shape[0]
    _, module = checks.make(NAME, base)
    assert {key: tuple(value.shape) for key, value in module.state_dict().items()} == {"bias": (1, words)}
    _, module = with_domains(base, tmp_path, rank=7)
    shapes = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    assert shapes == {"speakers": (3, 7), "words": (7, words)}
    assert not get_method(NAME).changes_encoder(module)


def samples(folder: Path, *domains: str) -> Samples:
    train = [Segment("雨停了。", domain=domain) for domain in domains]
    return Samples(tiny_pair(layers=2), train, [], folder, load_settings())


def test_domains_are_named_in_a_file_of_the_bundle(tmp_path: Path) -> None:
    method = get_method(NAME)
    assert method.prepare(samples(tmp_path, "a", "b"), ExtremeConfig(), Progress()).files == {}
    artefacts = method.prepare(samples(tmp_path, "b", "a", "b"), ExtremeConfig(per_domain=True, domain="a"), Progress())
    assert json.loads(artefacts.files["domains.json"].read_text(encoding="utf-8")) == {"domains": ["b", "a"]}
    base = tiny_base(layers=2)
    config = ExtremeConfig(per_domain=True, domain="a")
    module = method.build(base, method.open(tmp_path, base, config), config)
    assert (module.names, module.chosen) == (["b", "a"], 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"domain": "a"}, "only with per_domain"),
        ({"domain": "c", "per_domain": True}, "'c' is not a domain of the samples. They are 'a', 'b'"),
    ],
)
def test_a_domain_that_is_not_there_is_refused(options: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=words):
        get_method(NAME).prepare(samples(tmp_path, "a", "b"), ExtremeConfig(**options), Progress())


@pytest.mark.parametrize("names", [[], ["a", "a"], [1], {"a": 1}, "missing"])
def test_a_bundle_with_bad_domains_is_refused(names: Any, tmp_path: Path) -> None:
    method, base, config = get_method(NAME), tiny_base(layers=2), ExtremeConfig(per_domain=True)
    if names != "missing":
        domains_file(tmp_path, names)
    with pytest.raises(BundleError, match=r"domains\.json"):
        method.build(base, method.open(tmp_path, base, config), config)
