"""Rows of numbers in eight bits each, with a power of two for each row: what is read back is rounded to itself again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

MOST = 127


def to_eight_bits(rows: Tensor, least: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(values (..., r), exponents (...)) in int8 of rows (..., r): values times two to the exponents are off by at most a 127th of
    the largest number of their row. `least` (...): the smallest step that a row may have.
    """
    import torch

    step = rows.abs().amax(-1).double() / (MOST + 0.5)  # (...)
    step = step if least is None else torch.maximum(step, least.double())  # (...)
    exponents = step.clamp(2.0**-100, 2.0**100).log2().ceil()  # (...)
    values = torch.ldexp(rows.double(), -exponents[..., None]).round().clamp(-MOST, MOST)  # (..., r)
    return values.to(torch.int8), exponents.to(torch.int8)


def from_eight_bits(values: Tensor, exponents: Tensor) -> Tensor:
    """The rows (..., r), in float32, exactly."""
    import torch

    return torch.ldexp(values.float(), exponents.float()[..., None])  # (..., r)
