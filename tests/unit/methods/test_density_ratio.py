"""The density ratio against its equations on real text, in scoring and in search; its file against damage."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import Segment, SentencePair
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError
from engine.methods import Artefacts, get_method
from engine.methods.data import Samples
from engine.methods.density_ratio.choose_weight import WEIGHTS
from engine.methods.density_ratio.config import DensityRatioConfig
from engine.methods.density_ratio.files import FILE, read
from engine.methods.density_ratio.method import CHOICE
from engine.methods.density_ratio.module import histories
from engine.methods.density_ratio.ngrams import NONE, Ngrams, count
from engine.plugins import Plugin
from tests.bases import SENTENCES

METHOD: Any = get_method("density_ratio")
TEXTS = [a for a, _ in SENTENCES[:3]]
START = 0


def witten_bell(inputs: list[list[int]], labels: list[list[int]], words: int, order: int) -> Any:
    """The equation, word for word, in Python's floats."""
    after: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for row, answers in zip(inputs, labels, strict=True):
        for at, label in enumerate(answers):
            for m in range(min(order - 1, at + 1) + 1):
                after[tuple(row[at + 1 - m : at + 1])][label] += 1

    def p(word: int, history: tuple[int, ...]) -> float:
        lower = 1 / words if not history else p(word, history[1:])
        seen = after.get(history)
        if not seen:
            return lower
        return (seen[word] + len(seen) * lower) / (seen.total() + len(seen))

    return p


@pytest.fixture(scope="module")
def sentences() -> tuple[list[list[int]], list[list[int]]]:
    """Characters of the bundled literary sample as tokens."""
    lines = Path("assets/samples/literary-zh/literary-zh.txt").read_text(encoding="utf-8").splitlines()[:60]
    numbers = {char: number + 1 for number, char in enumerate(sorted(set("".join(lines))))}
    labels = [[numbers[char] for char in line] for line in lines if line]
    return [[START, *row[:-1]] for row in labels], labels


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_those_of_the_equation(sentences: Any, order: int) -> None:
    inputs, labels = sentences
    words = 1 + max(map(max, labels))
    model, p = Ngrams(count(inputs, labels, words, order)), witten_bell(inputs, labels, words, order)
    rows = [*inputs[:3], [START, 5, 5, 5, 5], [START, labels[0][0], 7, 9]]  # histories that occur, and that do not
    for row in rows:
        history = histories(torch.tensor([row]), order - 1)[0]  # (T, h)
        result = model(history).double().exp()  # (T, V)
        assert torch.allclose(result.sum(1), torch.ones(len(row), dtype=torch.double), atol=1e-4)
        for at in range(len(row)):
            context = tuple(row[max(0, at + 2 - order) : at + 1]) if order > 1 else ()
            for word in (1, 2, 7, row[min(at + 1, len(row) - 1)], words - 1):
                assert float(result[at, word]) == pytest.approx(p(word, context), rel=1e-4)


def test_rows_are_alone_in_a_batch(sentences: Any) -> None:
    inputs, labels = sentences
    model = Ngrams(count(inputs, labels, 1 + max(map(max, labels)), 3))
    history = histories(torch.tensor([inputs[0][:8], [START, 3, 3, 3, 3, 3, 3, 3]]), 2).flatten(0, 1)  # (R, h)
    assert int((history == NONE).sum()) == 2, "before the first input there is nothing"
    together = model(history)  # (R, V)
    assert all(torch.equal(model(row[None])[0], together[i]) for i, row in enumerate(history))


@pytest.fixture
def samples(pair: Any, tmp_path: Path) -> Samples:
    pairs = [SentencePair(a, b) for a, b in SENTENCES]
    train = [Segment(text) for text in ("他忽然听见远处的钟声。", *(sentence_pair.target for sentence_pair in pairs[4:]))]
    return Samples(pair, train, [], tmp_path, load_settings(), sentence_pairs={"train": [], "valid": pairs[:4]})


def made(base: BaseModel, samples: Samples, **options: Any) -> tuple[Plugin, Artefacts]:
    config = DensityRatioConfig(**options)
    artefacts = METHOD.prepare(samples, config, Progress())
    return Plugin(METHOD, METHOD.build(base, artefacts, artefacts.config or config), {}), artefacts


def test_the_weight_is_the_likeliest_of_those_that_cost_general_text_nothing(
    base: BaseModel, samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = [(pair.source, pair.target) for pair in samples.pairs("valid")[::2]]
    plain = [SentencePair(a, b) for a, b in SENTENCES[4:8]]

    def loss(artefacts: Artefacts, weight: float, pairs: list[tuple[str, str]]) -> float:
        plugin = Plugin(METHOD, METHOD.build(base, artefacts, DensityRatioConfig(weight=weight)), {})
        rows = score(base, pairs, plugin)
        return -sum(total for total, _ in rows) / sum(tokens for _, tokens in rows)

    monkeypatch.setattr(Samples, "general_pairs", lambda self, progress: [])
    _, artefacts = made(base, samples)
    free = artefacts.config.weight  # type: ignore[union-attr]
    losses = {weight: loss(artefacts, weight, held_out) for weight in WEIGHTS}
    assert free == min(losses, key=losses.__getitem__)
    stamp = artefacts.files[FILE].stat().st_mtime_ns
    assert METHOD.prepare(samples, DensityRatioConfig(), Progress()).config == artefacts.config
    assert artefacts.files[FILE].stat().st_mtime_ns == stamp, "a second time nothing is counted"

    (samples.workspace / CHOICE).unlink()
    monkeypatch.setattr(Samples, "general_pairs", lambda self, progress: plain)
    monkeypatch.setattr("engine.methods.density_ratio.choose_weight.COST", -0.01)
    _, artefacts = made(base, samples)
    bound = loss(artefacts, 0.0, [(pair.source, pair.target) for pair in plain]) - 0.01
    allowed = [w for w in WEIGHTS if loss(artefacts, w, [(pair.source, pair.target) for pair in plain]) <= bound]
    assert allowed, "the samples hold the plain sentences, so that some weights make them likelier"
    assert artefacts.config.weight == min(allowed, key=losses.__getitem__)  # type: ignore[union-attr]


@pytest.mark.parametrize("against", ["unigrams", "general", "nothing"])
def test_scores_are_those_of_the_equation_and_strength_0_is_the_base(base: BaseModel, samples: Samples, against: str) -> None:
    plugin, _ = made(base, samples, weight=0.7, against=against)
    source, target = SENTENCES[0]
    labels = base.encode_target([target])[0]
    inputs = base.shift_right(base.pad_batch([labels]))  # (1, T)
    with torch.no_grad():
        logits = base.model(
            input_ids=base.pad_batch(base.encode([source])), decoder_input_ids=inputs, use_cache=False
        ).logits[0].double()  # (T, V)  # fmt: skip
    module, expected = plugin.module, 0.0
    for at, label in enumerate(labels):
        history = inputs[:, max(0, at - 1) : at + 1]  # (1, h)
        ratio = module.style(history)[0].double()  # (V,)
        if against != "nothing":
            other = module.general(history)[0] if against == "general" else module.style.unigram.log()  # (V,)
            ratio = ratio - other.double()  # (V,)
        expected += float((logits[at] + 0.7 * ratio).log_softmax(-1)[label])
    assert score(base, [(source, target)], plugin) == [(pytest.approx(expected, rel=1e-4), len(labels))]
    assert score(base, [(source, target)], plugin, strength=0.0) == score(base, [(source, target)])
    assert translate(base, TEXTS, plugin, strength=0.0) == translate(base, TEXTS)


def test_a_search_follows_the_samples_and_the_base_is_as_before(base: BaseModel, samples: Samples) -> None:
    before = translate(base, TEXTS)
    plugin, _ = made(base, samples, weight=4.0)
    changed = translate(base, TEXTS, plugin, decoding=Decoding(beam=2))
    assert changed != before
    likelihood = [sum(nats for nats, _ in score(base, list(zip(TEXTS, lines, strict=True)), plugin)) for lines in (changed, before)]
    assert likelihood[0] > likelihood[1]
    assert translate(base, TEXTS) == before


def test_the_quick_search_gives_what_the_librarys_gives(base: BaseModel, samples: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, _ = made(base, samples, weight=1.0)
    quick = translate(base, TEXTS, plugin, decoding=Decoding(beam=3))
    monkeypatch.setattr("engine.decoding.translate.BY_PREFIX", "no processor has this")
    assert translate(base, TEXTS, plugin, decoding=Decoding(beam=3)) == quick


def test_other_samples_take_the_place_without_anything_chosen_anew(base: BaseModel, samples: Samples, tmp_path: Path) -> None:
    plugin, artefacts = made(base, samples, weight=1.0, against="general")
    general = {name: tensor.clone() for name, tensor in plugin.module.general.named_buffers()}
    (tmp_path / "new").mkdir()
    swapped = METHOD.replace_samples(base, plugin.module, [SentencePair("", SENTENCES[0][1])], tmp_path / "new")
    again = METHOD.build(base, swapped, DensityRatioConfig(weight=1.0, against="general"))
    assert all(torch.equal(again.general.get_buffer(name), tensor) for name, tensor in general.items())
    history = torch.tensor([[base.encode_target([SENTENCES[0][1]])[0][0]]])
    assert torch.equal(again.style(history), plugin.module.style(history))
    assert artefacts.files[FILE].read_bytes() != swapped.files[FILE].read_bytes()


def test_a_history_that_the_samples_do_not_have_changes_nothing(base: BaseModel, samples: Samples) -> None:
    plugin, artefacts = made(base, samples, weight=0.3)
    assert all(name.startswith("style.") for name in load_file(artefacts.files[FILE]))
    words = len(base.model.get_output_embeddings().weight)
    unseen = next(token for token in range(5, words) if not bool((plugin.module.style.tokens_1 == token).any()))
    assert float(plugin.module.after(torch.tensor([[unseen, unseen]])).abs().max()) < 1e-5


def test_a_bundle_without_a_weight_is_refused(base: BaseModel, samples: Samples) -> None:
    _, artefacts = made(base, samples, weight=0.1)
    with pytest.raises(BundleError, match="its settings have no weight"):
        METHOD.build(base, artefacts, DensityRatioConfig())


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("style.tokens_1", lambda tensor: tensor + 10**6, "does not fit this base"),
        ("style.starts_1", lambda tensor: tensor + 1, "does not fit this base"),
        ("style.starts_2", lambda tensor: tensor.flip(0), "does not fit this base"),
        ("style.keys_2", lambda tensor: tensor.flip(0), "does not fit this base"),
        ("style.counts_1", lambda tensor: tensor * float("nan"), "does not fit this base"),
        ("general.sums_2", lambda tensor: tensor * 0, "does not fit this base"),
        ("general.unigram", lambda tensor: tensor[:-1], "does not fit this base"),
        ("general.unigram", lambda tensor: tensor.double(), "does not fit this base"),
        ("style.unigram", lambda tensor: None, "lacks the key style.unigram"),
        ("style.more", lambda tensor: torch.zeros(1), "unknown key style.more"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    base: BaseModel, samples: Samples, tmp_path: Path, key: str, change: Any, message: str
) -> None:
    _, artefacts = made(base, samples, weight=0.1, against="general")
    tensors = load_file(artefacts.files[FILE])
    other = change(tensors.get(key))
    tensors = {name: tensor for name, tensor in tensors.items() if name != key} | ({} if other is None else {key: other})
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "other.safetensors")
    words = len(base.model.get_output_embeddings().weight)
    with pytest.raises(BundleError, match=message):
        read(tmp_path / "other.safetensors", ("style", "general"), 3, words)
    (tmp_path / "other.safetensors").write_bytes(b"not such a file")
    with pytest.raises(BundleError, match="is damaged"):
        read(tmp_path / "other.safetensors", ("style", "general"), 3, words)
