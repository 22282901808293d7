"""Every method over a base on a GPU, or where there is none, on a simulated one: nothing may be left behind on the CPU
(tests/pretend_cuda.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.builders.bases.loop import ahead
from engine.builders.bases.options import BaseTrainingOptions
from engine.builders.bases.pairs import PairFile
from engine.builders.bases.run import BaseRun, train_base
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import Cancelled
from engine.methods import Artefacts, get_method, method_names
from engine.methods.knn.gate import FILE as GATE
from engine.plugins import Plugin, PluginStack
from engine.plugins.mixed_batch import translate_mixed
from engine.workflows.customize.pipeline import customize
from tests.bases import SENTENCES
from tests.pretend_cuda import is_on_gpu, pretend_cuda

SMALL: dict[str, dict[str, Any]] = {
    "memory_adapter": {"phrases_per_layer": 50},
    "ngram_memory": {"neighbours": 3, "neighbours_translating": 3},
    "translation_memory": {"warm_updates": 4, "memory_layers": 1, "retriever_layers": 1, "refresh_every": 2},
}
TRAINING = {
    "max_updates": 4, "tokens_per_batch": 256, "learning_rate": 0.003, "warmup": 2, "validate_every": 2,
    "checkpoint_every": 1, "patience": 0, "keep_pairs": 1.0, "watch": 2,
}  # fmt: skip
SOURCES = ["The rain stopped.", "He said nothing.", "I waited for a letter.", "Nobody came to the door."]
PAIRS = [(source, "他竟不曾来。") for source in SOURCES]
NAMES = [name for name in method_names() if not get_method(name).capabilities.needs_endpoint]
# Methods that read in two ways, and the options of the one that is not their default on few samples.
BY_SENTENCE = {f"{method} by sentence": (method, {"retrieval": "sentence"}) for method in ("knn", "memory_adapter")}


class Stop(Progress):
    """Wants to stop at the first update but one."""

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        if self.step == "Training" and done >= 2:
            raise Cancelled("Stopped.")
        super().advance(done, total, note)


@pytest.fixture(scope="module", autouse=True)
def cuda() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, pretend_cuda():
        patch.setenv("TAILORMT_DEVICE", "cuda")
        yield


@pytest.fixture(scope="module")
def there(tiny: Path, cuda: None) -> BaseModel:
    return BaseModel.load(tiny, "en", "zh", device="cuda")


@pytest.fixture(scope="module")
def make(
    request_for: Callable[..., Any], sample: Path, tmp_path_factory: pytest.TempPathFactory, cuda: None
) -> Callable[..., Path]:
    """The bundle of a method's plugin for two domains, whose training was stopped and resumed from its checkpoint. Samples and
    pairs are those of one workspace.
    """
    workspace = tmp_path_factory.mktemp("shared") / "workspace"
    lines = sample.read_text(encoding="utf-8").splitlines()
    files = [tmp_path_factory.mktemp("domains") / f"{name}.txt" for name in ("prose", "verse")]
    for number, file in enumerate(files):
        file.write_text("\n".join(lines[number::2]), encoding="utf-8")
    done: dict[str, Path] = {}

    def bundle(name: str) -> Path:
        if name not in done:
            folder = tmp_path_factory.mktemp(name.replace(" ", "_"))
            method, options = BY_SENTENCE.get(name, (name, SMALL.get(name, {})))
            request = request_for(
                folder / "plugin.zip", samples=tuple(map(str, files)), method=method, name=name, method_options=options,
                training_options=TRAINING,
            )  # fmt: skip
            settings = load_settings()
            assert settings.device == "cuda"
            if get_method(method).capabilities.trains:
                with pytest.raises(Cancelled):
                    customize(request, workspace, Stop(), settings=settings, run=folder / "run")
            customize(request, workspace, settings=settings, run=folder / "run")
            done[name] = folder / "plugin.zip"
        return done[name]

    return bundle


@pytest.mark.parametrize("name", [*NAMES, *BY_SENTENCE])
def test_a_plugin_is_made_and_used_there_and_used_on_a_cpu(
    name: str, make: Callable[..., Path], there: BaseModel, tiny: Path, tmp_path: Path
) -> None:
    plugin = Plugin.load(make(name), there, cache=tmp_path / "a")
    assert all(map(is_on_gpu, [*plugin.module.parameters(), *plugin.module.buffers()]))
    assert name != "knn by sentence" or (plugin.folder / GATE).exists(), "its gate is learned"
    translations = translate(there, SOURCES, plugin)
    greedy = there.decoding({"beam": 1})
    assert len(translate(there, SOURCES, plugin, decoding=greedy)) == len(SOURCES)
    if plugin.method.capabilities.offers_likelihood:
        score(there, PAIRS, plugin)
    plugin.attributions(there, SOURCES[0], "雨停了。", top=3)
    other = Plugin.load(make("memory_adapter"), there, cache=tmp_path / "b")
    translate(there, SOURCES, PluginStack([plugin, other]))
    for decoding in (None, greedy):
        mixed = translate_mixed(there, SOURCES, [plugin, other, None, other], decoding=decoding)
        assert len(mixed) == len(SOURCES)

    here = BaseModel.load(tiny, "en", "zh", device="cpu")
    assert translate(here, SOURCES, Plugin.load(make(name), here, cache=tmp_path / "c")) == translations


def test_batches_are_larger_there(there: BaseModel, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = BaseModel.load(tiny, "en", "zh", device="cpu")
    assert (there.batch_tokens, here.batch_tokens) == (16_384, 4096)
    assert (there.decoding().batch_tokens, here.decoding().batch_tokens) == (8192, 2048)
    monkeypatch.setenv("TAILORMT_BATCH_TOKENS", "512")
    assert BaseModel.load(tiny, "en", "zh").batch_tokens == 512
    assert there.decoding({"batch_tokens": 256}).batch_tokens == 256


def test_prompts_need_no_device(there: BaseModel) -> None:
    """The one method without tensors: what it asks the base for is a translation."""
    method = get_method("llm_prompt")
    assert {*NAMES, method.name} == set(method_names())
    config = method.config_class(base_url="http://127.0.0.1:1/v1", model="none", draft=True)
    module = method.build(there, Artefacts(), config)
    assert not module.state_dict()
    assert len(method.preview(there, module, SOURCES)) == len(SOURCES)


def test_a_base_is_trained_there_and_translates_on_a_cpu(tmp_path: Path) -> None:
    pairs, held, output = tmp_path / "pairs.tsv", tmp_path / "held.tsv", tmp_path / "en-zh"
    rows = [f"{n}. {a} {c}\t{n}. {b}{d}\n" for n in range(10) for a, b in SENTENCES for c, d in SENTENCES]
    pairs.write_text("".join(rows), encoding="utf-8")
    held.write_text("".join(f"{a}\t{b}\n" for a, b in SENTENCES), encoding="utf-8")
    for updates in (3, 5):  # the second time from its checkpoint
        options = BaseTrainingOptions(
            size="tiny", vocabulary=400, tokens=512, row_tokens=64, longest=60, warmup=2, watched=2, compile="no", updates=updates
        )
        run = BaseRun([PairFile(pairs)], [held], "en", "zh", output, options, device="cuda")
        assert train_base(run)["update"] == updates
    assert len(translate(BaseModel.load(output, "en", "zh", device="cpu"), SOURCES)) == len(SOURCES)


def test_what_stops_the_batches_made_ahead_for_a_gpu_ends_the_training() -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise OSError("no room")

    stream = ahead(batches(), torch.device("cuda"))
    assert next(stream) == 1
    with pytest.raises(OSError, match="no room"):
        next(stream)
