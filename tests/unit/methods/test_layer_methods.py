"""What holds for every method with parts inside the layers."""

from __future__ import annotations

from typing import Any

import pytest

from engine.methods.lhuc.config import UNITS
from tests import layer_checks as checks
from tests.reference_transformer import FAMILIES

ALL_PLACES: dict[str, Any] = {"places": UNITS}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("houlsby_adapter", {}), ("residual_adapter", {}), ("lhuc", {"places": ("feed_forward", "attention")}),
        ("lhuc", {"places": ("layer",)}),
    ],
)  # fmt: skip
def test_untrained_or_off_it_is_the_base(name: str, options: dict[str, Any], family: str) -> None:
    checks.check_identity_and_detachment(name, family, **options)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "options"), [("houlsby_adapter", {"bottleneck": 8}), ("residual_adapter", {"bottleneck": 8}), ("lhuc", ALL_PLACES)]
)
def test_it_learns_with_all_its_weights(name: str, options: dict[str, Any], family: str) -> None:
    checks.check_learning(name, family, **options)


@pytest.mark.parametrize(("name", "options"), [("houlsby_adapter", {}), ("residual_adapter", {}), ("lhuc", ALL_PLACES)])
@pytest.mark.parametrize("check", [checks.check_strength, checks.check_half_precision, checks.check_sides])
def test_strength_precision_and_sides(name: str, options: dict[str, Any], check: Any) -> None:
    check(name, **options)
