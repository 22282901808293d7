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
    """What a method needs and offers. The studio and the command line are built from it."""

    title: str
    summary: str
    source: str  # the paper
    needs_phrases: bool = False  # phrases are extracted before `prepare`
    needs_pairs: bool = False  # sentence pairs are made before `prepare`; otherwise after it, and only if the method trains
    needs_plausibility: bool = False  # of each synthetic source, whatever share of the pairs is trained on
    needs_held_out: bool = False  # the plausibility of the held-out samples only
    needs_bilingual: bool = False  # refuses samples without sources
    needs_domains: int = 1  # domains that the samples must cover
    needs_endpoint: bool = False  # calls a service that the user specifies
    trains: bool = True
    changes_encoder: bool = False  # the encoder's output may differ from the frozen one's: `Method.changes_encoder`
    identity_at_start: bool = True  # an untrained module changes nothing
    replays: bool = True  # general text can be mixed into the training pairs
    offers_strength: bool = True
    offers_likelihood: bool = True  # can score given translations
    offers_reads: bool = False  # `Method.attributions`
    offers_proportions: bool = False
    offers_swap: bool = False  # samples can be replaced without training: `Method.replace_samples`
    swaps_pairs: bool = True  # the new samples need sources
    has_memory: bool = False  # what is read during translation can be exchanged, to test whether it matters: `Method.ablate`
    needs_texts: bool = False  # reads the samples' sentences during translation, so a bundle must contain them

    @property
    def holds_samples(self) -> bool:
        """Whether a bundle contains all sentences of the samples, including those that are not trained on."""
        return self.offers_swap and self.has_memory

    def to_mapping(self) -> dict[str, object]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class HookPoint:
    """Where a module is applied: a function of the output and input of a base's module, both (B, T, d)."""

    target: nn.Module
    at_input: bool  # its result replaces the input of the module, otherwise the output
    change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # called with (output, input), or (input, input) if `at_input`

    def hook(self) -> RemovableHandle:
        """Register the hook. Returns the handle that removes it."""
        if self.at_input:
            return self.target.register_forward_pre_hook(lambda module, args: (self.change(args[0], args[0]), *args[1:]))

        def at_output(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
            inputs = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (B, T, d)
            if isinstance(output, tuple):
                return (self.change(output[0], inputs), *output[1:])
            return self.change(output, inputs)

        return self.target.register_forward_hook(at_output, with_kwargs=True)


@dataclass
class Artefacts:
    """What `Method.prepare` makes of the samples: files by their names in the bundle."""

    memory: Memory | None = None
    files: dict[str, Path] = field(default_factory=dict)
    config: Options | None = None  # the settings completed by `prepare`, as the bundle records them
    folder: Path | None = None  # the unpacked bundle, in which data derived from its files can be cached
    remembered: int = 0  # target tokens in a memory without phrases


@dataclass(frozen=True)
class Batch:
    """One training batch: source side, target side, and the indices of its pairs."""

    sources: torch.Tensor  # (B, S) source tokens
    mask: torch.Tensor  # (B, S), 1 at source tokens
    encoded: torch.Tensor | None  # (B, S, d) the frozen encoder's output, detached; None if the method changes it
    inputs: torch.Tensor  # (B, T) decoder input
    labels: torch.Tensor  # (B, T), padding where there is no token
    step: int  # number of updates before this batch
    pairs: Pairs  # all pairs
    rows: Sequence[int]  # (B,) indices into `pairs`

    @classmethod
    def of(cls, base: BaseModel, pairs: Pairs, rows: Sequence[int], *, step: int = 0, encode: bool = False) -> Batch:
        """The batch of these rows, on the base's device; with the encoder's output if `encode`."""
        import torch

        sources = base.pad_batch([pairs.sources[i] for i in rows])  # (B, S)
        labels = base.pad_batch([pairs.labels[i] for i in rows])  # (B, T)
        with torch.no_grad():
            encoded = base.encoder_states(sources) if encode else None  # (B, S, d)
        return cls(sources, base.mask(sources), encoded, base.shift_right(labels), labels, step, pairs, rows)


@dataclass(frozen=True)
class Loss:
    """`total` (scalar) is minimised, a mean over target tokens; `parts` are its terms, for the log."""

    total: torch.Tensor
    parts: Mapping[str, float]


class Method(ABC):
    """One way to customize a frozen base. Stateless: all state is in the module that it builds and in its artefacts."""

    name: ClassVar[str]
    config_class: ClassVar[type[Options]]
    capabilities: ClassVar[Capabilities]
    # What a budget sets for this method: {budget: {"method": {...}, "training": {...}}}; otherwise the defaults, and the
    # budget's training settings (engine.training.BUDGETS).
    budgets: ClassVar[Budgets] = {}
    # Named settings that replace a budget's, for example those of a paper: {preset: {setting: value}}.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    # -- making a plugin

    def reads_phrases(self, config: Any) -> bool:
        """Whether `prepare` needs phrases under these settings."""
        return self.capabilities.needs_phrases

    def prepare(self, samples: Samples, config: Any, progress: Progress) -> Artefacts:
        """Compute what `build` needs. Finished files in the workspace are reused. Raises Cancelled, StorageError."""
        return Artefacts()

    def open(self, folder: Path, base: BaseModel, config: Any) -> Artefacts:
        """The artefacts of an unpacked bundle, checked. Raises BundleError when they do not fit."""
        return Artefacts(files={file.name: file for file in folder.iterdir()})

    def cost(self, config: Any, work: Workload) -> Cost:
        """An estimate from settings and sizes only. The default is for a method that trains a few weights, or, if it trains
        nothing and calls no service, stores one vector for each token of the samples.
        """
        if self.capabilities.trains or self.capabilities.needs_endpoint:
            return Cost()
        return Cost(units=work.total_characters, preparing=1.1, decoding=1.4, files=work.total_characters * 6 + work.datastore())

    @abstractmethod
    def build(self, base: BaseModel, artefacts: Artefacts, config: Any) -> nn.Module:
        """A new, untrained module for this base. Its `state_dict` contains exactly the trained weights."""

    def encode(self, base: BaseModel, samples: Samples, part: str, progress: Progress) -> Pairs:
        """The pairs of the part "train" or "valid", as token ids."""
        from engine.methods.batches import Pairs

        return Pairs.encode(base, samples.pairs(part))

    def changes_encoder(self, module: nn.Module) -> bool:
        """Whether the attached module changes the encoder's output. If not, training passes it the frozen encoder's output."""
        return self.capabilities.changes_encoder

    def lr_scale(self, module: nn.Module) -> float:
        """Multiplier of the learning rate. Adam moves each weight by about the learning rate, whatever the weight's magnitude;
        a single weight for a unit or a word must move further than a weight of a matrix.
        """
        return 1.0

    def lr_scales(self, module: nn.Module) -> Mapping[str, float]:
        """Additional multipliers for single weights, by the prefix of their keys in `state_dict`."""
        return {}

    def after_training(self, module: nn.Module) -> None:  # noqa: B027 - most methods need nothing here
        """Hook that is called once after training, before the weights are saved."""

    def shrink(self, module: Any, share: float) -> None:
        """Interpolate between the base (0) and the trained module (1) in place (Wortsman et al., Robust Fine-Tuning of Zero-Shot
        Models, 2022). For methods with the setting `shrink`.
        """
        module.shrink(share)

    def packed(self, module: nn.Module) -> Mapping[str, torch.Tensor]:
        """The trained weights in the form in which a bundle stores them."""
        return module.state_dict()

    def unpacked(self, module: nn.Module, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """The inverse of `packed`. Unknown keys are passed through, for the caller to refuse."""
        return weights

    def prepare_for_inference(self, module: nn.Module) -> None:
        """Switch a trained module to inference and precompute what is constant from now on."""
        module.eval()

    @contextlib.contextmanager
    def inference_mode_while_training(self, module: nn.Module) -> Iterator[None]:
        """Inside the block the module can translate, although its training is not finished; afterwards training continues
        unaffected.
        """
        learning = module.training
        module.eval()
        try:
            yield
        finally:
            module.train(learning)

    @contextlib.contextmanager
    def observed(self, module: nn.Module) -> Iterator[dict[str, Any]]:
        """Yields a mapping that is filled at the end of the block with statistics of memory reads, for the training log."""
        yield {}

    def misled(self, module: nn.Module) -> AbstractContextManager[None] | None:
        """A block in which each sentence reads the memory of another sentence of its batch. If the loss stays the same, the
        memory's content does not matter. None if the method cannot do so.
        """
        return None

    def replace_samples(
        self, base: BaseModel, module: nn.Module, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        """Replace the samples of the module, in place and without training.

        Returns the files in `workspace` that replace those of the same name in the bundle. Sources are empty strings if
        `Capabilities.swaps_pairs` is false and the samples have none.
        """
        raise NotImplementedError

    def ablate(self, base: BaseModel, module: nn.Module, kind: str, material: Material) -> None:
        """Replace the memory of a finished module in place by one of `engine.methods.ablation.KINDS`; the weights do not change.
        For methods with `Capabilities.has_memory`.

        Raises UnavailableError with the reason if the memory cannot be replaced in this way.
        """
        raise NotImplementedError

    # -- using it

    @abstractmethod
    def attach(self, base: BaseModel, module: nn.Module, strength: float = 1.0) -> AbstractContextManager[None]:
        """Hook the module into the base for the duration of a `with` block. Strength 0 sets no hooks."""

    def hook_points(self, base: BaseModel, module: nn.Module, strength: float = 1.0) -> Sequence[HookPoint] | None:
        """Everything that `attach` does, as hooks that treat each row independently, so that the rows of a batch can have
        different plugins (`engine.plugins.mixed_batch`). None if `attach` does anything else.
        """
        return None

    def set_source(  # noqa: B027 - only methods with retrieval need it
        self, base: BaseModel, module: nn.Module, sources: torch.Tensor, batch: Batch | None = None
    ) -> None:
        """Called with the source tokens (B, S) before each batch that is translated, scored or trained on, to retrieve what
        depends on the sentences. In training, `batch` identifies the pairs, whose own targets must not be retrieved. Hidden
        states of the decoder can have a multiple of B rows: the beams of a sentence are adjacent.
        """

    def routes(self, base: BaseModel, module: nn.Module, texts: Sequence[str]) -> Routes:
        """See `Adapter.routes`. For a method that consists of plugins with domain filters."""
        return ()

    def needs_fixed_batch(self, module: nn.Module) -> bool:
        """Whether `set_source` stores data for each row of the batch, so that finished sentences must remain in the batch."""
        return type(self).set_source is not Method.set_source

    def on_batch_shrink(self, module: nn.Module, active: torch.Tensor) -> None:  # noqa: B027 - optional
        """Called with the indices (b,) of the sentences of `set_source` that remain when finished ones leave the batch."""

    def batches_beams_per_sentence(self, module: nn.Module) -> bool:
        """Whether decoding may pass the hypotheses of a sentence to cross-attention as queries (b, K, d) instead of
        (b * K, 1, d). True for modules that treat positions independently or do not touch cross-attention.
        """
        return False

    def log_probabilities(self, base: BaseModel, module: nn.Module, batch: Batch) -> torch.Tensor:
        """Log-probabilities (M, V) of the M target positions of a batch without padding, in row order. The module is attached."""
        from engine.methods.losses import log_probabilities

        return log_probabilities(base, batch)

    def loss(self, base: BaseModel, module: nn.Module, batch: Batch) -> Loss:
        """The training loss of a batch. The module is attached. Randomness comes from torch's global generator."""
        from engine.methods.losses import likelihood

        nll = likelihood(base, self.log_probabilities(base, module, batch), batch)
        return Loss(nll, {"nll": nll.item()})

    def logits_processors(self, base: BaseModel, module: nn.Module, strength: float) -> Sequence[Any]:
        """`transformers.LogitsProcessor`s, for methods that need the prefix at each step. A method that needs only the hidden
        state hooks the base's output embeddings in `attach` instead, which works for scoring too.

        Set the attribute `by_prefix` of a processor to true if its result depends only on the prefix of a row and not on the
        row's index: the faster search of `engine.decoding.beam_search` can then be used.
        """
        return ()

    def translate(
        self, base: BaseModel, module: nn.Module, texts: Sequence[str], inner: Callable[[Sequence[str]], list[str]],
        strength: float, decoding: Decoding, progress: Progress,
    ) -> list[str] | None:  # fmt: skip
        """Translations of methods that do not work inside the base; None for all others.

        `inner` translates with the base and the other plugins in use.
        """
        return None

    def preview(self, base: BaseModel, module: nn.Module, texts: Sequence[str]) -> list[dict[str, object]]:
        """The requests that would be sent to a service for the texts, as plain data without secrets. Sends nothing."""
        return []

    def attributions(
        self, base: BaseModel, module: nn.Module, source: str, translation: str, top: int = 5
    ) -> list[dict[str, object]]:
        """What the method read from its memory for each target token, as plain data; empty if it has no memory.

        A row has `position`, `token`, `layer` (-1 for the output), `place` (the module), `gate` (the base's share) and `items`:
        a list of {"text", "source", "weight"} by descending weight, with further keys that depend on the method.
        """
        return []
