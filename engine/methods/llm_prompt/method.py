"""Prompting a large language model with the samples (ChatGPT in Table 1 of paper 1).

Any service that supports OpenAI's chat completions can be used. It is called only when a sentence is translated with the plugin,
not when a plugin is made, and only if the user allows its address (`TAILORMT_ENDPOINTS`). `preview` shows the requests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.core.atomic_files import write_json
from engine.core.languages import unspaced
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import SentencePair
from engine.errors import CorpusError
from engine.memory.retrieval_set import FILE, load_sentences, save_sentences
from engine.methods.cost import Cost, Workload
from engine.methods.data import Samples
from engine.methods.interface import Artefacts, Capabilities, Method
from engine.methods.llm_prompt.config import LlmPromptConfig
from engine.methods.llm_prompt.prompt import Examples, body, messages

if TYPE_CHECKING:
    from torch import nn


class LlmPrompt(Method):
    """Translates with a large language model that is prompted with the user's samples."""

    name: ClassVar[str] = "llm_prompt"
    config_class = LlmPromptConfig
    capabilities = Capabilities(
        title="Prompting a large language model",
        summary="A service of your choice translates, prompted with the samples nearest to each sentence. "
        "Your sentences leave this machine.",
        source="The baseline ChatGPT of Xu et al., Pluggable Neural Machine Translation Models via Memory-augmented Adapters "
        "(2023)",
        needs_pairs=True,
        needs_endpoint=True,
        trains=False,
        identity_at_start=False,  # a different model translates
        offers_strength=False,  # there is nothing to scale
        offers_likelihood=False,
        offers_reads=True,
        offers_swap=True,
        needs_texts=True,
    )

    def prepare(self, samples: Samples, config: LlmPromptConfig, progress: Progress) -> Artefacts:
        """Write the samples with their sources, and `preview.json`, the request for a held-out sentence. Raises CorpusError if
        there are no samples.
        """
        pairs = samples.pairs("train")
        if not pairs:
            raise CorpusError("There are no samples to show to the model. Add sentences.")
        file = samples.workspace / FILE
        save_sentences(pairs, file)
        held_out = (samples.pairs("valid") or pairs)[0].source
        languages = (samples.pair.forward.source, samples.pair.forward.target)
        request = requests_for([held_out], load(file), languages, config)[0]
        write_json(samples.workspace / "preview.json", request, "the preview")
        return Artefacts(files={FILE: file})

    def open(self, folder: Path, base: BaseModel, config: LlmPromptConfig) -> Artefacts:
        load(folder / FILE)
        return Artefacts(files={FILE: folder / FILE})

    def cost(self, config: LlmPromptConfig, work: Workload) -> Cost:
        return Cost(files=work.trained_characters * 6)

    def build(self, base: BaseModel, artefacts: Artefacts, config: LlmPromptConfig) -> nn.Module:
        from engine.methods.llm_prompt.module import PromptModule

        file = artefacts.files.get(FILE)
        module = PromptModule(load(file) if file else Examples(()), config)
        module.file = file
        return module

    def replace_samples(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        file = workspace / FILE
        save_sentences(pairs, file)
        module.examples, module.file = load(file), file
        return Artefacts(files={FILE: file})

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Nothing is attached to the base."""
        yield

    def translate(
        self, base: BaseModel, module: Any, texts: Sequence[str], inner: Callable[[Sequence[str]], list[str]],
        strength: float, decoding: Decoding, progress: Progress,
    ) -> list[str]:  # fmt: skip
        """Translate with one request per text; empty texts are not sent. `decoding` is ignored."""
        from engine.methods.llm_prompt.client import Service, check_allowed

        config: LlmPromptConfig = module.config
        check_allowed(config, load_settings().endpoints)
        service = Service(config)
        selected = [i for i, text in enumerate(texts) if text.strip()]
        sentences = [" ".join(texts[i].split()) for i in selected]
        prompts = preview(base, module, sentences, inner(sentences) if config.draft and sentences else None)
        try:
            answers = service.ask([request["body"] for request in prompts], progress)
        finally:
            module.usage = service.usage
        results, space = [""] * len(texts), "" if unspaced(base.target) else " "
        for i, answer in zip(selected, answers, strict=True):
            results[i] = space.join(part.strip() for part in answer.splitlines() if part.strip())
        return results

    def preview(self, base: BaseModel, module: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The requests for the texts, as a dry run; with `draft`, the base's translations that they contain are made."""
        from engine.decoding.translate import translate

        return preview(base, module, texts, translate(base, texts) if module.config.draft else None)

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, Any]]:
        """A single row: the samples in the request for this sentence, weighted by their overlap."""
        matches = module.examples.chosen(source, module.config)[:top]
        pairs = module.examples.pairs
        items = [{"text": pairs[i][1], "source": pairs[i][0], "weight": value} for i, value in matches]
        return [{"position": 0, "token": "", "layer": -1, "place": "prompt", "gate": 0.0, "items": items}]


def preview(base: BaseModel, module: Any, texts: Sequence[str], drafts: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The request {"url", "body"} for each text, without the key. Nothing is sent."""
    return requests_for(texts, module.examples, (base.source, base.target), module.config, drafts)


def requests_for(
    texts: Sequence[str],
    examples: Examples,
    languages: tuple[str, str],
    config: LlmPromptConfig,
    drafts: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    url = f"{config.base_url.rstrip('/')}/chat/completions"
    results = []
    for i, text in enumerate(texts):
        pairs = [examples.pairs[position] for position, _ in examples.chosen(text, config)]
        message = messages(text, pairs, languages, config, drafts[i] if drafts else None)
        results.append({"url": url, "body": body(message, config)})
    return results


def load(file: Path) -> Examples:
    """Load the samples. Raises BundleError naming the line that cannot be read."""
    return Examples(tuple((pair.source, pair.target) for pair in load_sentences(file)))
