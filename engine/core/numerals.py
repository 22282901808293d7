"""Parsing whole numbers from external text (addresses, forms and headers) in a single way."""

from __future__ import annotations

LARGEST = 2**31 - 1  # of a row's number in every store


def whole_number(text: object, low: int = 0, high: int = LARGEST) -> int | None:
    """The number written in ASCII digits; None for anything else (`²`, `+1`, `1_0`) and for numbers out of range."""
    digits = str(text if text is not None else "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > len(str(high)):
        return None
    number = int(digits[-len(str(high)) :])
    return number if low <= number <= high else None
