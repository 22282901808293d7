"""The training of a base: what a packed sentence sees, the sampled loss, resume, and the folder that comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from engine.base import BaseModel, read_card
from engine.builders.bases.loop import rate_factor
from engine.builders.bases.network import PackedLoss, choose_candidates, initial_model
from engine.builders.bases.options import BaseTrainingOptions
from engine.builders.bases.packing import encode_pairs, packed_batches
from engine.builders.bases.pairs import PairFile
from engine.builders.bases.run import BaseRun, train_base
from engine.builders.bases.vocabulary import load_vocabulary
from engine.builders.bases.weights import Weights
from engine.core.progress import Progress
from engine.decoding.translate import translate
from engine.errors import Cancelled, CorpusError, ModelError, OptionError
from tests.bases import EN_ZH, SENTENCES

pytestmark = pytest.mark.slow

QUICK = BaseTrainingOptions(
    size="tiny", vocabulary=400, tokens=512, row_tokens=64, longest=60, candidates=256, warmup=5, watched=2, save_every=60
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table of 600 different pairs, made by joining two of the sentences, and one of held-out ones."""
    folder = tmp_path_factory.mktemp("pairs")
    joined = [(f"{a} {c}", f"{b}{d}") for a, b in SENTENCES for c, d in SENTENCES]
    numbered = [(f"{n}. {a}", f"{n}. {b}") for n in range(1 + 600 // len(joined)) for a, b in joined][:600]
    pairs, held = folder / "pairs.tsv", folder / "held.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in numbered), encoding="utf-8")
    held.write_text("".join(f"{a}\t{b}\n" for a, b in SENTENCES), encoding="utf-8")
    return pairs, held


class StopAt(Progress):
    """Wants to stop when a report of that update comes."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.at, self.hit = update, False

    def metrics(self, row: dict[str, object]) -> None:
        self.hit = self.hit or int(str(row.get("step", 0))) >= self.at

    def check(self) -> None:
        if self.hit:
            raise Cancelled("Stopped.")


class TestNetwork:
    def test_packed_sentences_have_the_loss_and_gradients_they_have_alone(self) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        examples = encode_pairs(SENTENCES, [1.0] * len(SENTENCES), vocabulary, 60)
        torch.manual_seed(0)
        model = initial_model(vocabulary, QUICK, None)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith("bias"):
                    weight.normal_(0, 0.05)
        plain = initial_model(vocabulary, QUICK, None)
        plain.load_state_dict(model.state_dict())
        plain.eval()
        losses, count = [], 0
        for pair in SENTENCES:
            for way in (0, 1):
                tag = vocabulary.tags["en" if way else "zh"]
                source, target = vocabulary.encode([pair[way], pair[1 - way]])
                labels = torch.tensor([*target, 0])  # (T,)
                logits = plain(
                    input_ids=torch.tensor([[tag, *source, 0]]), decoder_input_ids=torch.tensor([[vocabulary.pad, *target]])
                ).logits[0]  # (T, V)
                losses.append(functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1))
                count += labels.numel()
        expected = torch.stack(losses).sum() / count
        expected.backward()
        network = PackedLoss(model, 0.1, torch.float32).eval()
        (batch,) = packed_batches(examples, rows=99, row_tokens=64, seed=0, epoch=0)
        assert len(batch.source) < len(examples), "several sentences share a row"
        loss = network(batch, None)
        loss.backward()
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
        gradients = {name: weight.grad for name, weight in plain.named_parameters()}
        for name, weight in model.named_parameters():
            if weight.grad is None:
                assert "embed_positions" in name
                continue
            ours, theirs = weight.grad, gradients[name]
            if name.endswith("shared.weight"):  # the start token's vector: transformers leaves padding out, a base learns it
                ours, theirs = ours[: vocabulary.pad], theirs[: vocabulary.pad]
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")

    def test_the_sampled_loss_is_near_that_over_all_words(self) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        examples = encode_pairs(SENTENCES, [1.0] * len(SENTENCES), vocabulary, 60)
        torch.manual_seed(0)
        network = PackedLoss(initial_model(vocabulary, QUICK, None), 0.0, torch.float32).eval()
        (batch,) = packed_batches(examples, rows=99, row_tokens=64, seed=0, epoch=0)
        full = float(network(batch, None).detach())
        sampled = [
            float(network(batch, choose_candidates(batch.labels, vocabulary.size, 3000, (seed,))).detach()) for seed in range(8)
        ]
        assert sum(sampled) / len(sampled) == pytest.approx(full, rel=0.01)
        assert choose_candidates(batch.labels, vocabulary.size, 0, (0,)) is None
        assert choose_candidates(batch.labels, 100, 3000, (0,)) is None or vocabulary.size <= 3000


class TestOptimizers:
    def test_where_bfloat16_is_slow_muon_takes_the_same_steps_in_float32(self, monkeypatch: pytest.MonkeyPatch) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        examples = encode_pairs(SENTENCES, [1.0] * len(SENTENCES), vocabulary, 60)
        (batch,) = packed_batches(examples, rows=99, row_tokens=64, seed=0, epoch=0)
        cast, after = torch.Tensor.bfloat16, []
        for fast in (True, False):
            monkeypatch.setattr("engine.builders.bases.weights.fast_bfloat16", lambda device, fast=fast: fast)
            torch.manual_seed(0)
            model = initial_model(vocabulary, QUICK, None)
            before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
            weights = Weights(model, QUICK, torch.device("cpu"))
            PackedLoss(model, 0.1, torch.float32).eval()(batch, None).backward()
            weights.step(1.0)
            after.append({name: weight.detach() - before[name] for name, weight in model.named_parameters()})
        assert torch.Tensor.bfloat16 is cast
        name = "model.encoder.layers.0.fc1.weight"
        half, single = after[0][name], after[1][name]
        assert float((half - single).norm()) < 0.1 * float(single.norm()), "which has eight bits"
        assert not torch.equal(half, single)


class TestRates:
    def test_rise_plateau_fall(self) -> None:
        options = BaseTrainingOptions(updates=100, warmup=10, decay=0.4)
        assert rate_factor(options, 0, 0) == pytest.approx(0.1)
        assert rate_factor(options, 50, 0) == 1.0
        assert rate_factor(options, 80, 0) == pytest.approx(0.5)
        assert rate_factor(options, 100, 0) == 0.0

    def test_whichever_limit_is_nearer_counts(self) -> None:
        options = BaseTrainingOptions(updates=100, minutes=1, warmup=0, decay=0.5)
        assert rate_factor(options, 10, 45) == pytest.approx(0.5)


class TestTraining:
    def test_it_learns_and_leaves_a_base_that_loads(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        options = QUICK.replace(updates=60)
        result = train_base(BaseRun([PairFile(files[0])], [files[1]], "en", "zh", tmp_path / "en-zh", options, about="Made up."))
        losses = [json.loads(x)["loss"] for x in (tmp_path / "en-zh/training/metrics.jsonl").read_text().splitlines()]
        assert losses[-1] < losses[0] - 0.5
        assert result["update"] == 60
        assert len(result["scores"]) == 2
        card = read_card(tmp_path / "en-zh")
        assert set(card["languages"]) == {"en", "zh"}
        assert "Made up." in card["card"]
        assert "| held | en to zh |" in card["card"]
        assert "Signatures" in card["card"]
        for way in (("en", "zh"), ("zh", "en")):
            assert len(translate(BaseModel.load(tmp_path / "en-zh", *way), ["He left.", "他走了。"])) == 2

    def test_stopped_and_resumed_it_ends_with_the_same_weights(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        options = QUICK.replace(updates=50, dropout=0.1, watched=0)
        arguments = ([PairFile(files[0])], [files[1]], "en", "zh")
        train_base(BaseRun(*arguments, tmp_path / "whole", options))
        with pytest.raises(Cancelled):
            train_base(BaseRun(*arguments, tmp_path / "parts", options), StopAt(20))
        assert not (tmp_path / "parts/model.safetensors").exists()
        train_base(BaseRun(*arguments, tmp_path / "parts", options))
        undisturbed, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
        assert undisturbed == parts
        assert json.loads((tmp_path / "whole/config.json").read_text())["dropout"] == 0.1  # fine-tuning goes by it

    def test_a_longer_run_goes_on_and_a_base_can_be_the_start(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        arguments = ([PairFile(files[0])], [], "en", "zh")
        train_base(BaseRun(*arguments, tmp_path / "a", QUICK.replace(updates=5)))
        assert train_base(BaseRun(*arguments, tmp_path / "a", QUICK.replace(updates=8)))["update"] == 8
        result = train_base(BaseRun(*arguments, tmp_path / "b", QUICK.replace(updates=3), start=tmp_path / "a"))
        assert result["update"] == 3
        assert (tmp_path / "a/vocab.json").read_bytes() == (tmp_path / "b/vocab.json").read_bytes()

    def test_what_cannot_be_trained_is_a_sentence_and_leaves_nothing(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        few = tmp_path / "few.tsv"
        few.write_text("Hello.\t你好。\n", encoding="utf-8")
        out = tmp_path / "out"
        with pytest.raises(CorpusError, match="1 usable pairs are too few"):
            train_base(BaseRun([PairFile(few)], [], "en", "zh", out, QUICK))
        with pytest.raises(CorpusError, match="pieces at most"):
            train_base(BaseRun([PairFile(files[0])], [], "en", "zh", out, QUICK.replace(vocabulary=30000)))
        with pytest.raises(OptionError, match="two different languages"):
            train_base(BaseRun([PairFile(files[0])], [], "en", "en", out, QUICK))
        with pytest.raises(OptionError, match="holds no sentence of 500"):
            train_base(BaseRun([PairFile(files[0])], [], "en", "zh", out, QUICK.replace(longest=500)))
        with pytest.raises(ModelError, match="no vocabulary"):
            train_base(BaseRun([PairFile(files[0])], [], "en", "zh", out, QUICK, start=tmp_path))
        assert not (out / "config.json").exists()
        assert not (out / "model.safetensors").exists()
