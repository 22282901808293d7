"""Whole numbers that come from outside as text: one way to read them, for addresses, forms and headers."""

from __future__ import annotations

LARGEST = 2**31 - 1  # of a row's number in every store


def whole_number(text: object, low: int = 0, high: int = LARGEST) -> int | None:
    """The number that digits of ASCII write; None for anything else (`²`, `+1`, `1_0`) and for what is out of the range."""
    digits = str(text if text is not None else "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > len(str(high)):
        return None
    number = int(digits[-len(str(high)) :])
    return number if low <= number <= high else None
