"""The assignment of phrases to decoder layers (paper 1, section 4.3 and figure 6)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from engine.errors import OptionError

ORDERS = ("short_to_long", "long_to_short", "random")


def assign_layers(lengths: Sequence[int], layers: int, order: str = "short_to_long", seed: int = 1) -> list[int]:
    """The layer (from 0, the bottom) of each phrase, given the phrases' lengths in tokens.

    Phrases are sorted by length and divided into `layers` parts of equal size (up to one phrase); phrases of one length keep
    their order. `random` assigns parts of the same sizes regardless of length. Raises OptionError on an unknown order.
    """
    if order not in ORDERS:
        raise OptionError("order: {order!r} is not one of {orders}.", order=order, orders=", ".join(ORDERS))
    indices = list(range(len(lengths)))
    if order == "random":
        random.Random(seed).shuffle(indices)
    else:
        indices.sort(key=lambda i: lengths[i] if order == "short_to_long" else -lengths[i])
    result = [0] * len(lengths)
    for rank, i in enumerate(indices):
        result[i] = rank * layers // len(indices)
    return result
