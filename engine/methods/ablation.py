"""Replacements for a plugin's memory that show whether its content matters: `Method.ablate` and `tailormt plugin ablate`.

empty      an empty memory
foreign    a memory made from general text instead of the samples, in the same way
noise      Gaussian noise with the mean and covariance of the rows
shuffled   the same rows, each key with the value of another row
mean       a single row, the mean of all rows
oracle     phrases or sentence pairs of the references: the upper bound. If it does not help, memory reading is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.languages import language_message
from engine.core.progress import Progress
from engine.errors import OptionError, TailorError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from engine.base import BaseModel, LanguagePair
    from engine.core.settings import Settings
    from engine.corpora import Segment
    from engine.corpora.types import SentencePair
    from engine.methods.data import Samples
    from engine.phrases import PhraseOptions

HOLDS = {
    "empty": "nothing",
    "foreign": "general text",
    "noise": "noise of the same mean and covariance",
    "shuffled": "values shuffled among the keys",
    "mean": "one row, the mean",
    "oracle": "the references themselves: the upper bound",
}
KINDS = tuple(HOLDS)


class UnavailableError(TailorError):
    """Raised if the plugin's memory cannot be replaced in the requested way; the message states the reason."""


def kinds_of(text: str) -> list[str]:
    """The kinds in a list such as `empty,noise`, in the order of `KINDS`. Raises OptionError if one is unknown or there is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise OptionError(
                "against: there is no memory {word!r} to compare with. Known: {kinds}.", word=word, kinds=", ".join(KINDS)
            )
    if not words:
        raise OptionError("against: name at least one of {kinds}.", kinds=", ".join(KINDS))
    return [kind for kind in KINDS if kind in words]


@dataclass
class Material:
    """The material from which replacement memories are made. `texts` has the segments of "foreign" and "oracle"; missing sources
    are back-translated with the reverse base on demand.
    """

    base: BaseModel
    texts: Mapping[str, Sequence[Segment]]
    workspace: Path
    settings: Settings
    phrase_options: PhraseOptions
    load_pair: Callable[[], LanguagePair]
    seed: int = 1
    progress: Progress = field(default_factory=Progress)

    @cached_property
    def pair(self) -> LanguagePair:
        """The bases of both directions. Raises UnavailableError if there is no base for the reverse direction."""
        try:
            return self.load_pair()
        except TailorError as error:
            raise UnavailableError(error.message) from None

    def folder(self, kind: str) -> Path:
        """The directory for the files of a memory of that kind; created if missing."""
        folder = self.workspace / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def segments(self, kind: str) -> Sequence[Segment]:
        """The segments of "foreign" or "oracle". Raises UnavailableError if there are none."""
        if not self.texts[kind]:
            raise UnavailableError(
                "No general text in {target} is bundled. Provide some in a file with --foreign.",
                target=language_message(self.base.target),
            )
        return self.texts[kind]

    def pairs(self, kind: str, *, sources: bool = True) -> list[SentencePair]:
        """Sentence pairs of "foreign" or "oracle"; with `sources=False`, missing sources are left empty."""
        from engine.methods.data import with_sources

        segments = self.segments(kind)
        missing = sources and any(segment.source is None for segment in segments)
        backward, partial = self.pair.backward if missing else None, self.folder(kind) / "sources.partial.jsonl"
        return with_sources(segments, backward, partial, self.progress)

    def samples(self, kind: str) -> Samples:
        """The segments and their phrases, as the main job passes them to `Method.prepare`."""
        from engine.methods.data import Samples
        from engine.phrases import extract_phrases

        segments = self.segments(kind)
        phrases = extract_phrases(
            [segment.text for segment in segments], self.base.target, self.phrase_options,
            parser_dirs=self.settings.parser_dirs, pieces=self.base.subwords, device=self.settings.device,
            progress=self.progress,
        )  # fmt: skip
        return Samples(self.pair, segments, [], self.folder(kind), self.settings, phrases)

    def generator(self, number: int = 0) -> torch.Generator:
        """A random generator derived from the seed; `number` selects independent streams."""
        import torch

        return torch.Generator().manual_seed(self.seed * 1_000_003 + number)

    def order(self, count: int) -> Tensor:
        """A random permutation (count,) without fixed points. Raises UnavailableError for fewer than two rows."""
        import torch

        if count < 2:
            raise UnavailableError("The memory has fewer than two rows, which cannot be shuffled.")
        draw = torch.randperm(count, generator=self.generator())  # (count,)
        order = torch.empty_like(draw)
        order[draw] = draw.roll(1)  # each row gets the row drawn before it
        return order


def gaussian_like(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` draws (count, d), in float32, from the normal distribution with the mean and covariance of rows (N, d)."""
    import torch

    rows = rows.detach().cpu().double()  # (N, d)
    mean = rows.mean(0)  # (d,)
    centred = rows - mean  # (N, d)
    variances, axes = torch.linalg.eigh(centred.T @ centred / max(1, len(rows)))  # (d,), (d, d)
    root = axes * variances.clamp(min=0).sqrt()  # (d, d)
    draws = torch.randn(count, len(mean), generator=generator, dtype=torch.float64)  # (count, d)
    return (mean + draws @ root.T).float()  # (count, d)


def evenly_spaced(values: Tensor, count: int) -> Tensor:
    """At most `count` of the values (N,), in proportion to their frequency: evenly spaced in sorted order."""
    import torch

    ordered = values.sort().values  # (N,)
    indices = torch.linspace(0, len(ordered) - 1, min(count, len(ordered))).round().long()  # (count,)
    return ordered[indices]  # (count,)


class SubstituteStates:
    """Replaces memory states that are computed per sentence by noise or by their mean.

    Noise is drawn once per memory item, so that an item has the same states wherever it is retrieved.
    """

    def __init__(self, states: Tensor, kind: str, material: Material, longest: int) -> None:
        """`states` (N, d): a sample of the memory's states for mean and covariance; `longest`: maximum tokens per item."""
        self.mean = states.float().mean(0)  # (d,)
        self.noise = gaussian_like(states, 4096, material.generator()) if kind == "noise" else None  # (4096, d)
        self.material, self.longest = material, longest
        self.drawn: dict[int, Tensor] = {}

    def __call__(self, numbers: Sequence[int], states: Tensor) -> Tensor:
        """The replacement of the states (E, L, d) of the items `numbers` (E,), in the same shape."""
        import torch

        if self.noise is None:
            return self.mean.to(states).expand_as(states)  # (E, L, d)
        return torch.stack([self.of(number)[: states.shape[1]] for number in numbers]).to(states)  # (E, L, d)

    def of(self, number: int) -> Any:
        import torch

        if number not in self.drawn:
            assert self.noise is not None
            draw = self.material.generator(1 + number)
            self.drawn[number] = self.noise[torch.randint(len(self.noise), (self.longest,), generator=draw)]  # (L, d)
        return self.drawn[number]
