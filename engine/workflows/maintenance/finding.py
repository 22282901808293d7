"""What a check of the doctor finds: one sentence that says what is wrong and what to do, and how it can be mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Finding:
    """`mend` puts it right and returns the sentence that says so; None where a person has to."""

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
