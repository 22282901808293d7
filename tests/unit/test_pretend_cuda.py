"""The pretended device refuses what CUDA refuses and allows what CUDA allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.pretend_cuda import is_on_gpu, pretend_cuda


@pytest.fixture(autouse=True)
def cuda() -> Iterator[None]:
    with pretend_cuda():
        yield


def there(*shape: int) -> Tensor:
    return torch.ones(shape, device="cuda")


REFUSED: dict[str, Callable[[], object]] = {
    "a sum": lambda: there(2) + torch.ones(2),
    "a sum with a number on the GPU": lambda: torch.ones(2) + there(),
    "a matrix product": lambda: there(2, 2) @ torch.ones(2, 2),
    "a layer": lambda: torch.nn.Linear(2, 2)(there(1, 2)),
    "an embedding": lambda: torch.nn.Embedding(3, 2).to("cuda")(torch.tensor([1])),
    "a list": lambda: torch.cat([there(2), torch.ones(2)]),
    "places on the GPU": lambda: torch.ones(3)[torch.tensor([1], device="cuda")],
    "rows set": lambda: there(3).__setitem__([0, 1], torch.ones(2)),
    "numpy": lambda: there(2).numpy(),
    "numpy unasked": lambda: np.asarray(there(2)),
    "a generator": lambda: torch.randn(2, device="cuda", generator=torch.Generator()),
    "a generator in place": lambda: there(2).normal_(generator=torch.Generator()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cuda_refuses_is_refused(name: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"found two|indices on|convert cuda|generator"):
        REFUSED[name]()


def test_what_cuda_allows_is_allowed() -> None:
    tensor = there(3)
    assert is_on_gpu(tensor + torch.tensor(2.0))
    assert is_on_gpu(tensor[torch.tensor([0, 2])])
    tensor[:2] = torch.zeros(2)
    assert tensor.tolist() == [0, 0, 1]
    assert not is_on_gpu(torch.zeros(3).copy_(tensor))
    assert np.asarray(tensor.cpu()).sum() == 1


def test_what_is_made_of_a_tensor_is_where_it_is() -> None:
    layer = torch.nn.Linear(2, 2).to("cuda")
    assert layer.weight.device == there(1).device == torch.device("cuda:0")
    assert all(map(is_on_gpu, layer.state_dict().values()))
    layer(there(1, 2)).sum().backward()
    assert layer.weight.grad is not None
    assert is_on_gpu(layer.weight.grad)
    for tensor in (there(4).view(2, 2), torch.zeros_like(there(2)), there(2).new_zeros(1), there(2).to(torch.float16)):
        assert is_on_gpu(tensor)
    assert not is_on_gpu(there(2).to("cpu"))
    assert not is_on_gpu(torch.tensor(there(2).tolist()))
