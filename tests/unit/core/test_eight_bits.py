"""Numbers in eight bits: near what they were, and the same when they are rounded again."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.core.eight_bits import LARGEST, SMALLEST, from_eight_bits, power_of_two, to_eight_bits

ROWS = st.lists(st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=3, max_size=3), min_size=1, max_size=5)


@given(ROWS)
def test_rows_are_near_what_they_were_and_rounded_once_for_good(rows: list[list[float]]) -> None:
    given_rows = torch.tensor(rows)
    values, exponents = to_eight_bits(given_rows)
    read = from_eight_bits(values, exponents)
    assert ((read - given_rows).abs() <= given_rows.abs().amax(1, keepdim=True) / 127 + 2.0**SMALLEST).all()
    again = to_eight_bits(read)
    assert torch.equal(from_eight_bits(*again), read)


def test_a_step_is_no_smaller_than_it_may_be() -> None:
    values, exponents = to_eight_bits(torch.tensor([[1e-6, -3e-6]]), torch.tensor([1e-3]))
    assert not values.any()
    assert 2.0 ** int(exponents) >= 1e-3


def test_powers_of_two_are_exact() -> None:
    exponents = torch.arange(SMALLEST, LARGEST + 1, dtype=torch.int8)
    assert power_of_two(exponents).tolist() == [2.0**i for i in range(SMALLEST, LARGEST + 1)]
