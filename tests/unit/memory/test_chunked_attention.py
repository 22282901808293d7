"""Reading a constant memory while learning, against autograd over the equations as they are written."""

from __future__ import annotations

import pytest
import torch

from engine.memory import chunked_attention as room
from engine.memory.chunked_attention import PackedMemory, attend
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.memory_adapter.module import MemoryReader


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("block", [1 << 23, 700])
def test_values_and_gradients_are_those_of_autograd(quick: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if quick and not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(room, "is_faster", lambda: quick)
    monkeypatch.setattr(room, "BLOCK", block)
    torch.manual_seed(1)
    memory, gradient = torch.randn(41, 16), torch.randn(7, 9, 16)
    queries = torch.randn(7, 9, 16, requires_grad=True)
    result = attend(queries, PackedMemory(memory))
    result.backward(gradient)
    ours, queries.grad = queries.grad, None
    plain = torch.softmax(queries @ memory.T, -1) @ memory
    plain.backward(gradient)
    torch.testing.assert_close(result, plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours, queries.grad, atol=1e-5, rtol=1e-4)


def test_the_gradient_is_right_to_many_digits() -> None:
    torch.manual_seed(2)
    memory = torch.randn(13, 4, dtype=torch.float64)
    queries = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda tensor: attend(tensor, PackedMemory(memory)), (queries,))


def test_all_weights_of_a_reader_learn_as_before_and_nothing_large_is_kept() -> None:
    torch.manual_seed(3)
    reader = MemoryReader(16, MemoryAdapterConfig())
    reader.memory = torch.randn(5000, 16)
    reader.scale.data.fill_(0.02)
    anchor, query = torch.randn(2, 8, 16), torch.randn(2, 8, 16)
    selected: list[int] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        selected.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        reader(anchor, query).square().sum().backward()
    assert max(selected) < 16 * 5000, "no weight a query and phrase"
    ours = {name: parameter.grad.clone() for name, parameter in reader.named_parameters()}
    reader.zero_grad()
    reader.recorded = {}  # the way that shows what was read keeps all weights
    reader(anchor, query).square().sum().backward()
    for name, parameter in reader.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, atol=1e-4, rtol=1e-4)


def test_another_memory_is_read_when_it_is_exchanged() -> None:
    torch.manual_seed(4)
    reader = MemoryReader(16, MemoryAdapterConfig())
    query = torch.randn(2, 3, 16)
    for seed in (5, 6):
        torch.manual_seed(seed)
        reader.memory = torch.randn(30, 16)
        learning = reader.read(query)
        with torch.no_grad():
            torch.testing.assert_close(learning, reader.read(query), atol=1e-5, rtol=1e-4)
