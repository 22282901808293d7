"""The output bias of Michel and Neubig (2018), full or factored. Their speakers correspond to the domains of the samples."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.errors import BundleError, OptionError
from engine.methods.cost import Cost, Workload
from engine.methods.interface import Artefacts, Batch, Capabilities, Loss, Method
from engine.methods.output_bias.config import ExtremeConfig

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.methods.data import Samples
    from engine.methods.output_bias.module import OutputBias

DOMAINS = "domains.json"


class Extreme(Method):
    """Makes the words of the samples likelier, regardless of context."""

    name: ClassVar[str] = "extreme"
    config_class = ExtremeConfig
    capabilities = Capabilities(
        title="Extreme adaptation",
        summary="A bias for each word of the vocabulary. Small, quick, blind to context.",
        source="Michel and Neubig, Extreme Adaptation for Personalized Neural Machine Translation (2018)",
        replays=False,
    )

    def prepare(self, samples: Samples, config: ExtremeConfig, progress: Progress) -> Artefacts:
        """With `per_domain`, write domains.json: the names of the domains in the order of their biases. Raises OptionError if
        `domain` is set without `per_domain` or is not a domain of the samples.
        """
        from engine.core.atomic_files import write_json

        if config.domain and not config.per_domain:
            raise OptionError("domain: only with per_domain has a domain a bias of its own. Set per_domain to true.")
        if not config.per_domain:
            return Artefacts()
        if config.domain and config.domain not in samples.domains:
            raise OptionError(
                "domain: {domain!r} is not a domain of the samples. They are {domains}.",
                domain=config.domain,
                domains=", ".join(map(repr, samples.domains)),
            )
        file = samples.workspace / DOMAINS
        write_json(file, {"domains": samples.domains}, "the domains")
        return Artefacts(files={DOMAINS: file})

    def open(self, folder: Path, base: BaseModel, config: ExtremeConfig) -> Artefacts:
        file = folder / DOMAINS
        if config.per_domain and not file.exists():
            raise BundleError(
                "{domains} is missing, which names the domains of the biases. Get a new copy of the bundle.", domains=DOMAINS
            )
        return Artefacts(files={DOMAINS: file} if config.per_domain else {})

    def cost(self, config: ExtremeConfig, work: Workload) -> Cost:
        speakers, words = work.domains if config.per_domain else 1, work.shape.words
        weights = speakers * words if config.rank is None else config.rank * (speakers + words)
        return Cost(weights=weights, training=0.3)

    def build(self, base: BaseModel, artefacts: Artefacts, config: ExtremeConfig) -> OutputBias:
        from engine.methods.output_bias.module import OutputBias

        names = read_domains(artefacts.files[DOMAINS]) if config.per_domain else [""]
        words = base.model.get_output_embeddings().weight.shape[0]
        module = OutputBias(names, words, config.rank)
        module.config = config
        if config.domain:
            if config.domain not in names:
                raise BundleError(
                    "{domains} does not name the domain {domain!r}. Get a new copy of the bundle.",
                    domains=DOMAINS,
                    domain=config.domain,
                )
            module.chosen = names.index(config.domain)
        return module.to(base.device)

    def lr_scale(self, module: Any) -> float:
        return float(module.config.speed)

    def prepare_for_inference(self, module: Any) -> None:
        module.eval()
        module.current = None

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: only the output layer is changed."""
        return True

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Hook the output layer, whose output are the logits before the base's own bias is added."""
        with contextlib.ExitStack() as hooks:
            hooks.callback(setattr, module, "current", None)
            if strength != 0.0:
                head = base.model.get_output_embeddings()
                hooks.enter_context(head.register_forward_hook(lambda layer, args, logits: module(logits, strength)))
            yield

    def needs_fixed_batch(self, module: Any) -> bool:
        """False: `set_source` stores data only in training."""
        return False

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """In training with several domains, record the domain of each target position; unknown domains get the mean bias."""
        import torch

        module.current = None
        if batch is None or len(module.names) == 1:
            return
        domain_indices = {name: i for i, name in enumerate(module.names)}
        owners = [domain_indices.get(batch.pairs.sentences[row].domain, -1) for row in batch.rows]
        counts = (batch.labels != base.pad).sum(1)  # (B,)
        module.current = torch.tensor(owners, device=counts.device).repeat_interleave(counts)  # (M,)

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        """The negative log-likelihood plus `decay` times the sum of squares of all biases."""
        nll = super().loss(base, module, batch)
        if not module.config.decay:
            return nll
        size = module.biases().square().sum()  # ()
        return Loss(nll.total + module.config.decay * size, {**nll.parts, "size": size.item()})


def read_domains(file: Path) -> list[str]:
    """The names in domains.json. Raises BundleError if it cannot be read."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))["domains"]
        valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not valid or not names or len(set(names)) != len(names):
            raise ValueError("no list of names")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BundleError("{file} cannot be read ({error}). Get a new copy of the bundle.", file=file.name, error=error) from None
    return list(names)
