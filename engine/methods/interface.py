"""The interface of a method of customization, and the record of what it needs and offers."""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.options import Options
from engine.core.progress import Progress
from engine.methods.cost import Cost, Workload

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from engine.base import BaseModel
    from engine.base.adapter import Routes
    from engine.base.decoding_options import Decoding
    from engine.corpora.types import SentencePair
    from engine.memory import Memory
    from engine.methods.ablation import Material
    from engine.methods.batches import Pairs
    from engine.methods.data import Samples

Budgets = Mapping[str, Mapping[str, Mapping[str, Any]]]  # {budget: {"method" or "training": {setting: value}}}


@dataclass(frozen=True)
class Capabilities:
    """What a method needs and offers; the studio and the command line build themselves from it."""

    title: str
    summary: str
    source: str  # the paper
    needs_phrases: bool = False  # phrases are found before `prepare`
    needs_pairs: bool = False  # sentence pairs are made before `prepare`; else after it, and only if it trains
    needs_plausibility: bool = False  # of each source that the base wrote, whatever share of the pairs is trained on
    needs_held_out: bool = False  # those of the held-out samples alone are
    needs_bilingual: bool = False  # samples without their sources will not do
    needs_domains: int = 1  # domains that the samples must hold
    needs_endpoint: bool = False  # calls a service that the user names
    trains: bool = True
    changes_encoder: bool = (
        False  # the encoder's output is not the frozen one's, or need not be: `Method.changes_encoder`
    )
    identity_at_start: bool = True
    replays: bool = True  # general text may be mixed into its training pairs
    offers_strength: bool = True
    offers_likelihood: bool = True  # gives probabilities of given translations
    offers_reads: bool = False
    offers_proportions: bool = False
    offers_swap: bool = False  # other samples can take the place of its own without training: `Method.replace_samples`
    swaps_pairs: bool = True  # and these need their sources
    has_memory: bool = (
        False  # what it reads while translating can be exchanged to see whether it matters: `Method.ablate`
    )
    needs_texts: bool = (
        False  # the samples' own words are read while translating, so that a bundle cannot do without them
    )

    @property
    def holds_samples(self) -> bool:
        """Whether a bundle holds every sentence of the samples, whatever is trained on."""
        return self.offers_swap and self.has_memory

    def to_mapping(self) -> dict[str, object]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class HookPoint:
    """Where a module is applied: a function of the output and input of a base's module, both (B, T, d)."""

    target: nn.Module
    at_input: bool  # what it makes takes the place of the input, else of the output
    change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of (output, input); at the input, of it twice

    def hook(self) -> RemovableHandle:
        """Set the change to work; returns the handle that takes it away again."""
        if self.at_input:
            return self.target.register_forward_pre_hook(
                lambda module, args: (self.change(args[0], args[0]), *args[1:])
            )

        def at_output(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
            given = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (B, T, d)
            if isinstance(output, tuple):
                return (self.change(output[0], given), *output[1:])
            return self.change(output, given)

        return self.target.register_forward_hook(at_output, with_kwargs=True)


@dataclass
class Artefacts:
    """What a method made of the samples before training: files by the name they have in a bundle, and where they lie."""

    memory: Memory | None = None
    files: dict[str, Path] = field(default_factory=dict)
    config: Options | None = None  # the settings as `prepare` completed them; the bundle records these
    folder: Path | None = None  # of an unpacked bundle, in which what is made of its files may be kept
    remembered: int = 0  # target tokens that a memory without phrases holds


@dataclass(frozen=True)
class Batch:
    """One training batch: source side, target side, and where in the pairs its rows stand."""

    sources: torch.Tensor  # (B, S) source tokens
    mask: torch.Tensor  # (B, S), 1 at source tokens
    encoded: (
        torch.Tensor | None
    )  # (B, S, d) the frozen encoder's output, without gradient; None where a method changes it
    inputs: torch.Tensor  # (B, T) decoder input
    labels: torch.Tensor  # (B, T), padding where there is no token
    step: int  # updates done before this batch
    pairs: Pairs  # the pairs that the batch is from
    rows: Sequence[int]  # (B,) which of them

    @classmethod
    def of(cls, base: BaseModel, pairs: Pairs, rows: Sequence[int], *, step: int = 0, encode: bool = False) -> Batch:
        """These rows of the pairs on the base's device; `encode`: with the encoder's output, as the base is attached now."""
        import torch

        sources = base.pad_batch([pairs.sources[i] for i in rows])  # (B, S)
        labels = base.pad_batch([pairs.labels[i] for i in rows])  # (B, T)
        with torch.no_grad():
            encoded = base.encoder_states(sources) if encode else None  # (B, S, d)
        return cls(sources, base.mask(sources), encoded, base.shift_right(labels), labels, step, pairs, rows)


@dataclass(frozen=True)
class Loss:
    """`total` is what is minimised, a mean a target token; `parts` are its terms for the log."""

    total: torch.Tensor
    parts: Mapping[str, float]


class Method(ABC):
    """One way to customize a frozen base. Stateless: all state is in the module it builds and the artefacts' files."""

    name: ClassVar[str]
    config_class: ClassVar[type[Options]]
    capabilities: ClassVar[Capabilities]
    # What a budget sets for this method: {budget: {"method": {...}, "training": {...}}}; nothing: defaults, and the budget's
    # training (engine.training.BUDGETS).
    budgets: ClassVar[Budgets] = {}
    # Settings by name that take the place of a budget's, such as those of a paper to the letter: {preset: {setting: value}}.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    # -- making a plugin

    def reads_phrases(self, config: Any) -> bool:
        """Whether `prepare` needs the samples' phrases under these settings."""
        return self.capabilities.needs_phrases

    def prepare(self, samples: Samples, config: Any, progress: Progress) -> Artefacts:
        """Make what building needs from the samples; finished files in the workspace are used again."""
        return Artefacts()

    def open(self, folder: Path, base: BaseModel, config: Any) -> Artefacts:
        """The artefacts of an unpacked bundle, checked. Raises BundleError when they do not fit."""
        return Artefacts(files={file.name: file for file in folder.iterdir()})

    def cost(self, config: Any, work: Workload) -> Cost:
        """What this method takes, counted without a model. This one is of a method that trains a few weights, or, where it trains
        nothing and calls no service, keeps a vector for each token of the samples.
        """
        if self.capabilities.trains or self.capabilities.needs_endpoint:
            return Cost()
        return Cost(units=work.held, preparing=1.1, decoding=1.4, files=work.held * 6 + work.datastore())

    @abstractmethod
    def build(self, base: BaseModel, artefacts: Artefacts, config: Any) -> nn.Module:
        """A new, untrained module for this base. `state_dict` holds exactly the trained weights."""

    def encode(self, base: BaseModel, samples: Samples, part: str, progress: Progress) -> Pairs:
        """The pairs that training ("train") or validation ("valid") goes over, as token ids."""
        from engine.methods.batches import Pairs

        return Pairs.encode(base, samples.pairs(part))

    def changes_encoder(self, module: nn.Module) -> bool:
        """Whether this module, attached, changes the encoder's output; if not, training gives it the frozen encoder's."""
        return self.capabilities.changes_encoder

    def lr_scale(self, module: nn.Module) -> float:
        """What the training's learning rate is multiplied by: Adam moves each weight by about the rate, whatever its size,
        and a weight that stands alone for a unit or a word must move further than one of a matrix.
        """
        return 1.0

    def lr_scales(self, module: nn.Module) -> Mapping[str, float]:
        """Further factors of the learning rate of single weights, by what their keys begin with."""
        return {}

    def after_training(self, module: nn.Module) -> None:  # noqa: B027 - most methods need nothing here
        """Called once after training, before the weights are saved."""

    def shrink(self, module: Any, share: float) -> None:
        """Go only this share of the way from the base to what was learnt (Wortsman et al., Robust Fine-Tuning of Zero-Shot Models,
        2022); of methods with the setting `shrink`.
        """
        module.shrink(share)

    def packed(self, module: nn.Module) -> Mapping[str, torch.Tensor]:
        """The trained weights as a bundle holds them."""
        return module.state_dict()

    def unpacked(self, module: nn.Module, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """Those of a bundle under the keys of `state_dict`; what does not fit is left for the caller to refuse."""
        return weights

    def prepare_for_inference(self, module: nn.Module) -> None:
        """Prepare a trained module for decoding: whatever is constant from now on is computed here, once."""
        module.eval()

    @contextlib.contextmanager
    def inference_mode_while_training(self, module: nn.Module) -> Iterator[None]:
        """A module in the middle of its training is ready to translate inside the block; afterwards it trains on as if nothing
        had been.
        """
        learning = module.training
        module.eval()
        try:
            yield
        finally:
            module.train(learning)

    @contextlib.contextmanager
    def observed(self, module: nn.Module) -> Iterator[dict[str, Any]]:
        """What the block reads, as plain data for the training's log; filled when the block ends, empty without a memory."""
        yield {}

    def misled(self, module: nn.Module) -> AbstractContextManager[None] | None:
        """A block in which each sentence reads what another one of its batch should: where that does as well, the memory's content
        does not matter. None of methods that cannot do so.
        """
        return None

    def replace_samples(
        self, base: BaseModel, module: nn.Module, pairs: Sequence[SentencePair], workspace: Path,
        progress: Progress | None = None,
    ) -> Artefacts:  # fmt: skip
        """Put other samples in the place of the module's own, without training; the module works with them afterwards.

        Returns the files, in `workspace`, that take the place of those of the same name in the bundle. Sources are empty
        where `Capabilities.swaps_pairs` is false and the samples have none.
        """
        raise NotImplementedError

    def ablate(self, base: BaseModel, module: nn.Module, kind: str, material: Material) -> None:
        """Give a finished module another memory, one of `engine.methods.ablation.KINDS`, for as long as it lives; the weights
        stay. Of methods with `Capabilities.has_memory`.

        Raises UnavailableError, with the reason, where this memory cannot be exchanged so.
        """
        raise NotImplementedError

    # -- using it

    @abstractmethod
    def attach(self, base: BaseModel, module: nn.Module, strength: float = 1.0) -> AbstractContextManager[None]:
        """Hook the module into the base for the length of a `with` block; afterwards the base is as before."""

    def hook_points(self, base: BaseModel, module: nn.Module, strength: float = 1.0) -> Sequence[HookPoint] | None:
        """All that `attach` does, as changes of states that treat each row by itself, so that the rows of one batch can have
        different plugins (`engine.plugins.mixed_batch`); None where it does anything else.
        """
        return None

    def set_source(  # noqa: B027 - only methods that look something up need it
        self, base: BaseModel, module: nn.Module, sources: torch.Tensor, batch: Batch | None = None
    ) -> None:
        """Called with the source tokens (B, S) before each batch that is translated, scored or trained on: the place to
        look up what depends on the sentence. In training `batch` tells which pairs they are, whose own targets must not
        be found. Hidden states of the decoder may have a multiple of B rows: those of a sentence's beams follow each other.
        """

    def routes(self, base: BaseModel, module: nn.Module, texts: Sequence[str]) -> Routes:
        """See `Adapter.routes`: of a method that is made of plugins with domain filters."""
        return ()

    def needs_fixed_batch(self, module: nn.Module) -> bool:
        """Whether `set_source` stores something for each row of the batch, so that finished sentences must stay in the batch."""
        return type(self).set_source is not Method.set_source

    def on_batch_shrink(self, module: nn.Module, active: torch.Tensor) -> None:  # noqa: B027 - only methods that hold something a sentence do
        """Go on with these sentences (b,) of the batch that `set_source` was given, numbered from 0; the others are done."""

    def batches_beams_per_sentence(self, module: nn.Module) -> bool:
        """Whether the module bears that decoding gives the attention over the source the hypotheses of a sentence as its
        queries (b, K, d) in place of (b * K, 1, d). True of modules that treat each position by itself, or leave that
        attention alone.
        """
        return False

    def log_probabilities(self, base: BaseModel, module: nn.Module, batch: Batch) -> torch.Tensor:
        """Log-probabilities (M, V) of the M real target positions of a batch, in row order; the module is attached."""
        from engine.methods.losses import log_probabilities

        return log_probabilities(base, batch)

    def loss(self, base: BaseModel, module: nn.Module, batch: Batch) -> Loss:
        """The training loss of a batch; the module is attached. Randomness comes from torch's global generator."""
        from engine.methods.losses import likelihood

        nll = likelihood(base, self.log_probabilities(base, module, batch), batch)
        return Loss(nll, {"nll": nll.item()})

    def logits_processors(self, base: BaseModel, module: nn.Module, strength: float) -> Sequence[Any]:
        """transformers LogitsProcessors for methods that need the whole translation so far at each step. One that needs the
        hidden state alone hooks the base's output embeddings in `attach`, which serves scoring as well.

        A processor whose attribute `by_prefix` is true depends on the prefix of a row alone, not on which row it is: rows may
        then come and go, and the quicker search of `engine.decoding.beam_search` is used.
        """
        return ()

    def translate(
        self, base: BaseModel, module: nn.Module, texts: Sequence[str], inner: Callable[[Sequence[str]], list[str]],
        strength: float, decoding: Decoding, progress: Progress,
    ) -> list[str] | None:  # fmt: skip
        """Translations by the method's own way, for methods that do not work inside the base; None for all others.

        `inner` translates with the base and whatever other plugins are in use.
        """
        return None

    def preview(self, base: BaseModel, module: nn.Module, texts: Sequence[str]) -> list[dict[str, object]]:
        """What would be sent to a service for each text, as plain data without secrets; of methods that call one. Nothing
        is sent.
        """
        return []

    def attributions(
        self, base: BaseModel, module: nn.Module, source: str, translation: str, top: int = 5
    ) -> list[dict[str, object]]:
        """What each token of a translation read, as plain data; empty where the method reads nothing.

        A row: `position`, `token`, `layer` (-1: the output), `place`, `gate` (the share of the base) and `items`: a list of
        {"text", "source", "weight"}, the heaviest first, and whatever more the method knows of them.
        """
        return []
