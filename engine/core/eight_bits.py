"""Rows of 8-bit numbers with a power of two as scale per row; re-encoding decoded rows is lossless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from torch import Tensor

MOST = 127
SMALLEST, LARGEST = -100, 100  # exponents


@dataclass(frozen=True)
class EightBits:
    """R rows of r 8-bit numbers."""

    values: Tensor  # (R, r) int8
    exponents: Tensor  # (R,) int8

    @classmethod
    def of(cls, rows: Tensor) -> Self:
        """Encode rows (R, r)."""
        return cls(*to_eight_bits(rows))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        """The numbers (..., r) of rows (...), in float32."""
        return from_eight_bits(self.values[rows], self.exponents[rows])  # (..., r)


def to_eight_bits(rows: Tensor, least: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Encode rows (..., r) as int8 values (..., r) and exponents (...).

    Values times two to the exponents differ by at most a 127th of the largest number of their row. `least` (...): the smallest
    step that a row may have.
    """
    import torch

    rows = rows.float()
    step = rows.abs().amax(-1) / (MOST + 0.5)  # (...)
    step = step if least is None else torch.maximum(step, least.float())  # (...)
    exponents = step.clamp(2.0**SMALLEST, 2.0**LARGEST).log2().ceil().to(torch.int8)  # (...)
    values = (rows * power_of_two(-exponents)[..., None]).round().clamp(-MOST, MOST)  # (..., r)
    return values.to(torch.int8), exponents


def from_eight_bits(values: Tensor, exponents: Tensor) -> Tensor:
    """The rows (..., r) that the values encode, in float32, exactly."""
    return values.float() * power_of_two(exponents)[..., None]  # (..., r)


def power_of_two(exponents: Tensor) -> Tensor:
    """Two to the exponents (...), in float32: exact on every device, unlike pow."""
    import torch

    return ((exponents.int().clamp(-126, 127) + 127) << 23).view(torch.float32)  # (...)
