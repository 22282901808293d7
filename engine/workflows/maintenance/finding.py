"""A finding of the doctor: one sentence that says what is wrong and what to do, and an optional repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Finding:
    """`mend` repairs the problem and returns a sentence about the repair; None if the user has to act."""

    check: str
    sentence: str
    place: str = ""
    mend: Callable[[], str] | None = field(default=None, repr=False)
    mended: str = ""

    def to_mapping(self) -> dict[str, object]:
        return {
            "check": self.check, "sentence": self.sentence, "place": self.place, "repairable": self.mend is not None,
            "repaired": self.mended,
        }  # fmt: skip
