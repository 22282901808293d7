"""Where the memory runs out, batches are halved once and the work goes on; the second time a sentence names the setting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from engine.core.oom import HalveOnOom, halves
from engine.decoding.translate import translate
from engine.errors import TailorError
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method
from engine.methods.batches import Pairs
from engine.training import TrainingOptions
from engine.training.loop import Trainer
from tests.bases import SENTENCES

pytestmark = pytest.mark.slow

ERRORS = (
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
)


class Hungry:
    """Stands in for a layer: the memory runs out at some of its calls, counted from 0, with batches of more than one row."""

    def __init__(self, real: Callable[..., Any], error: BaseException, at: set[int]) -> None:
        self.real, self.error, self.at, self.calls, self.sizes = real, error, at, 0, list[int]()

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.calls += 1
        self.sizes.append(len(named["input_ids"]))
        if self.calls - 1 in self.at:
            raise self.error
        return self.real(*args, **named)


@pytest.fixture
def hungry(base: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Hungry]:
    def make(error: BaseException, *at: int) -> Hungry:
        encoder = base.model.get_encoder()
        result = Hungry(encoder.forward, error, set(at))
        monkeypatch.setattr(encoder, "forward", lambda *args, **named: result(*args, **named))  # noqa: PLW0108
        return result

    return make


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_translation_goes_on_with_half_the_batch(base: Any, hungry: Callable[..., Hungry], error: BaseException) -> None:
    texts = [en for en, _ in SENTENCES]
    expected = translate(base, texts)
    calls = hungry(error, 0)
    assert translate(base, texts) == expected
    assert calls.sizes[:3] == [8, 4, 4]
    hungry(error, 0, 1)
    with pytest.raises(TailorError, match=r"even for batches of half the size\. Lower batch_tokens"):
        translate(base, texts)


def test_back_translation_and_the_memory_go_on_too(base: Any, hungry: Callable[..., Hungry], tmp_path: Path) -> None:
    from engine.decoding.greedy_search import back_translate

    texts = [en for en, _ in SENTENCES]
    pairs = [PhrasePair(i % 2, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    expected, memory = back_translate(base, texts), record(base, pairs, tmp_path / "a.safetensors")
    calls = hungry(ERRORS[0], 0)
    assert back_translate(base, texts) == expected
    assert calls.sizes[1] == (calls.sizes[0] + 1) // 2
    hungry(ERRORS[0], 0, 1)
    with pytest.raises(TailorError, match="Lower batch_tokens"):
        back_translate(base, texts)
    calls = hungry(ERRORS[0], 0)
    again = record(base, pairs, tmp_path / "b.safetensors")
    assert again.sizes == memory.sizes
    first, other = load_file(tmp_path / "a.safetensors"), load_file(tmp_path / "b.safetensors")
    assert all(torch.allclose(value, other[name], atol=1e-5) for name, value in first.items())
    hungry(ERRORS[0], 0, 1)
    with pytest.raises(TailorError, match="Lower batch_tokens"):
        record(base, pairs, tmp_path / "c.safetensors")
    assert not list(tmp_path.glob("*c.safetensors*"))


OPTIONS = TrainingOptions(
    max_updates=8, tokens_per_batch=96, learning_rate=3e-3, warmup=2, validate_every=4, checkpoint_every=3, accumulate=2
)


def learn(base: Any, folder: Path) -> tuple[Any, dict[str, torch.Tensor]]:
    torch.manual_seed(OPTIONS.seed)
    method = get_method("lhuc")
    module = method.build(base, Artefacts(), method.config_class())
    data = Pairs.encode(base, SENTENCES)
    result = Trainer(base, method, module, data, data, OPTIONS, folder, precision="float32").run()
    return result, {key: value.clone() for key, value in module.state_dict().items()}


@pytest.fixture(scope="module")
def plain(base: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, torch.Tensor]]:
    """A training with memory enough."""
    return learn(base, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("at", [0, 3, 9], ids=["first validation", "first update", "later"])
def test_training_goes_on_with_half_the_batch(
    base: Any, plain: tuple[Any, dict[str, torch.Tensor]], hungry: Callable[..., Hungry], tmp_path: Path, at: int
) -> None:
    hungry(ERRORS[0], at)
    result, others = learn(base, tmp_path / "halved")
    assert result.updates == plain[0].updates == 8
    for name, value in plain[1].items():
        assert torch.allclose(value, others[name], atol=1e-4), name  # the same sums in another order
    hungry(ERRORS[0], at)
    again, same = learn(base, tmp_path / "again")
    assert again.best_loss == result.best_loss
    for name, value in others.items():
        assert torch.equal(value, same[name]), name


def test_training_that_fits_in_no_half_names_the_setting(base: Any, hungry: Callable[..., Hungry], tmp_path: Path) -> None:
    hungry(ERRORS[0], *range(6, 99))
    with pytest.raises(TailorError, match="tokens_per_batch"):
        learn(base, tmp_path)


def test_a_batch_of_one_row_cannot_be_halved() -> None:
    def never(rows: list[int]) -> None:
        raise MemoryError

    with pytest.raises(TailorError, match="Lower batch_tokens"):
        HalveOnOom("batch_tokens").run([4], never)
    assert halves([1, 2, 3]) == [[1, 2], [3]]
    assert halves([1]) == [[1]]


def test_other_errors_are_no_matter_of_memory() -> None:
    def broken(rows: list[int]) -> None:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        HalveOnOom("batch_tokens").run([1, 2], broken)
