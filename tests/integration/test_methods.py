"""What every method of customization promises, run for each of them on a small real base and real sentences."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.core.options import describe
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import Cancelled, TailorError
from engine.methods import get_method, method_names
from engine.plugins import Plugin, PluginStack
from engine.workflows.customize.pipeline import customize
from engine.workflows.customize.request import method_config

# Settings under which a method is small enough for a test; any other method runs as it is.
SMALL: dict[str, dict[str, Any]] = {
    "memory_adapter": {"phrases_per_layer": 50},
    "ngram_memory": {"neighbours": 3, "neighbours_translating": 3},
    "translation_memory": {"warm_updates": 20, "memory_layers": 1, "retriever_layers": 1, "refresh_every": 4},
}
TRAINING = {
    "max_updates": 12, "tokens_per_batch": 256, "learning_rate": 0.003, "warmup": 2, "validate_every": 6,
    "checkpoint_every": 3, "patience": 0, "keep_pairs": 1.0, "watch": 2,
}  # fmt: skip
SOURCES = ["The rain stopped.", "He said nothing.", "I waited for a letter.", "Nobody came to the door."]

IN_REACH = [name for name in method_names() if not get_method(name).capabilities.needs_endpoint]
TRAINED = [name for name in IN_REACH if get_method(name).capabilities.trains]


class Stop(Progress):
    """Wants to stop at the first report of an update at or after a given one."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.update, self.wish = update, False

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        if self.step == "Training" and done >= self.update:
            raise Cancelled("Stopped.")
        super().advance(done, total, note)


@pytest.fixture(scope="module")
def asked(request_for: Callable[..., Any]) -> Callable[..., Any]:
    """The request of a short customization by a method."""

    def make(name: str, output: Path, **training: Any) -> Any:
        fields = {item.name for item in describe(get_method(name).config_class)}
        settings = {key: value for key, value in SMALL.get(name, {}).items() if key in fields}
        return request_for(output, method=name, name=name, method_options=settings, training_options={**TRAINING, **training})

    return make


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples, phrases and pairs, made once for all runs."""
    return tmp_path_factory.mktemp("shared") / "workspace"


@pytest.fixture(scope="module")
def made(
    asked: Callable[..., Any], workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """(bundle, summary) of a method's plugin, made once by the main job."""
    result: dict[str, tuple[Path, dict[str, Any]]] = {}

    def make(name: str) -> tuple[Path, dict[str, Any]]:
        if name not in result:
            folder = tmp_path_factory.mktemp(name)
            request = asked(name, folder / "plugin.zip")
            result[name] = folder / "plugin.zip", customize(request, workspace, run=folder / "run")
        return result[name]

    return make


@pytest.fixture(scope="module")
def loaded(made: Callable[..., Any], base: BaseModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Plugin]:
    cache = tmp_path_factory.mktemp("unpacked")
    return lambda name: Plugin.load(made(name)[0], base, cache=cache)


@pytest.fixture
def unchanged(base: BaseModel) -> Iterator[None]:
    """Whatever the test does, the base has the same weights, the same modules and the same output after it."""
    before = {key: value.clone() for key, value in base.model.state_dict().items()}
    modules = {name: id(module) for name, module in base.model.named_modules()}
    output = translate(base, SOURCES)
    yield
    assert {name: id(module) for name, module in base.model.named_modules()} == modules
    after = base.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in base.model.modules())
    assert not any(parameter.requires_grad for parameter in base.model.parameters())
    assert translate(base, SOURCES) == output


def samples_for(name: str, made: Callable[..., Any], base: BaseModel) -> tuple[Any, Any, Any]:
    """Method, configuration and artefacts of the plugin that was made."""
    method = get_method(name)
    path, _ = made(name)
    with zipfile.ZipFile(path) as bundle:
        card = json.loads(bundle.read("adapter_config.json"))
    return method, method.config_class.from_mapping(card["config"]), Plugin.load(path, base).folder


@pytest.mark.parametrize("name", TRAINED)
class TestTraining:
    def test_it_lowers_the_loss_on_held_out_sentences(self, name: str, made: Callable[..., Any]) -> None:
        _, summary = made(name)
        assert summary["metrics"]["validation_loss"] < summary["metrics"]["validation_loss_before"]
        assert summary["updates"] == TRAINING["max_updates"]
        assert summary["parameters"] > 0

    def test_it_starts_as_the_base(self, name: str, made: Callable[..., Any], base: BaseModel, unchanged: None, home: Path) -> None:
        method, config, folder = samples_for(name, made, base)
        if not method.capabilities.identity_at_start:
            pytest.skip("its record says that it does not")
        module = method.build(base, method.open(folder, base, config), config)
        method.prepare_for_inference(module)
        plugin = Plugin(method, module, {})
        assert translate(base, SOURCES, plugin) == translate(base, SOURCES)
        if method.capabilities.offers_likelihood:
            pairs = [(source, "雨停了。") for source in SOURCES]
            for (a, n), (b, m) in zip(score(base, pairs, plugin), score(base, pairs), strict=True):
                assert n == m
                assert a == pytest.approx(b, abs=1e-4)

    def test_stopped_and_resumed_it_ends_with_the_same_weights(
        self, name: str, asked: Callable[..., Any], made: Callable[..., Any], workspace: Path, tmp_path: Path
    ) -> None:
        request = asked(name, tmp_path / "plugin.zip")
        with pytest.raises(Cancelled):
            customize(request, workspace, Stop(5), run=tmp_path / "run")
        assert not request.output or not Path(request.output).exists()
        customize(request, workspace, run=tmp_path / "run")
        assert weights(tmp_path / "plugin.zip") == weights(made(name)[0])


@pytest.mark.parametrize("name", IN_REACH)
class TestUse:
    def test_it_changes_translations_or_their_likelihood_and_leaves_the_base_alone(
        self, name: str, loaded: Callable[..., Plugin], base: BaseModel, unchanged: None
    ) -> None:
        plugin = loaded(name)
        pairs = [(source, "他竟不曾来。") for source in SOURCES]
        changed = translate(base, SOURCES, plugin) != translate(base, SOURCES)
        if plugin.method.capabilities.offers_likelihood:
            changed |= score(base, pairs, plugin) != score(base, pairs)
        assert changed

    def test_an_error_inside_leaves_the_base_alone(
        self, name: str, loaded: Callable[..., Plugin], base: BaseModel, unchanged: None
    ) -> None:
        with pytest.raises(ZeroDivisionError), loaded(name).attached(base):
            raise ZeroDivisionError

    def test_strength_zero_is_the_base(self, name: str, loaded: Callable[..., Plugin], base: BaseModel, unchanged: None) -> None:
        plugin = loaded(name)
        assert translate(base, SOURCES, plugin, strength=0.0) == translate(base, SOURCES)
        pairs = [(source, "雨停了。") for source in SOURCES]
        assert score(base, pairs, plugin, strength=0.0) == score(base, pairs)

    def test_strength_is_a_dial(self, name: str, loaded: Callable[..., Plugin], base: BaseModel) -> None:
        plugin = loaded(name)
        offers = plugin.method.capabilities
        if not (offers.offers_strength and offers.offers_likelihood):
            pytest.skip("its record says that it has none")
        pairs = [(source, "他竟不曾来。") for source in SOURCES]
        none, little, half, full = (
            sum(total for total, _ in score(base, pairs, plugin, strength=s)) for s in (0.0, 0.01, 0.5, 1.0)
        )
        most = max(abs(full - none), abs(half - none))
        assert abs(little - none) < most or most < 1e-3
        assert len({none, half, full}) == 3

    def test_saved_and_loaded_it_translates_alike(
        self, name: str, made: Callable[..., Any], base: BaseModel, tmp_path: Path
    ) -> None:
        path, _ = made(name)
        first = Plugin.load(path, base, cache=tmp_path / "a")
        (tmp_path / "copy.zip").write_bytes(path.read_bytes())
        second = Plugin.load(tmp_path / "copy.zip", base, cache=tmp_path / "b")
        assert translate(base, SOURCES, first) == translate(base, SOURCES, second) == translate(base, SOURCES, first)

    def test_its_weights_have_exactly_the_keys_that_are_trained(
        self, name: str, made: Callable[..., Any], loaded: Callable[..., Plugin]
    ) -> None:
        plugin = loaded(name)
        trained = {key for key, value in plugin.module.named_parameters()}
        assert set(weights(made(name)[0])) == set(plugin.method.packed(plugin.module))
        assert trained <= set(plugin.module.state_dict())

    def test_two_plugins_over_one_base_do_not_mix(
        self, name: str, loaded: Callable[..., Plugin], base: BaseModel, unchanged: None
    ) -> None:
        plugin, other = loaded(name), loaded("memory_adapter")
        alone = translate(base, SOURCES, plugin), translate(base, SOURCES, other)
        assert (translate(base, SOURCES, plugin), translate(base, SOURCES, other)) == alone
        assert len(translate(base, SOURCES, PluginStack([plugin, other]))) == len(SOURCES)

    def test_each_sentence_of_a_batch_names_its_own(self, name: str, loaded: Callable[..., Plugin], base: BaseModel) -> None:
        from engine.plugins.mixed_batch import translate_mixed

        plugin = loaded(name)
        vanilla, custom = translate(base, SOURCES), translate(base, SOURCES, plugin)
        mixed = translate_mixed(base, SOURCES, [plugin, None, plugin, None])
        assert mixed[1] == translate(base, [SOURCES[1], SOURCES[3]])[0]
        assert mixed[0] == translate(base, [SOURCES[0], SOURCES[2]], plugin)[0]
        assert len(vanilla) == len(custom) == len(mixed)

    def test_what_it_reads_is_data(self, name: str, loaded: Callable[..., Plugin], base: BaseModel) -> None:
        plugin = loaded(name)
        rows = plugin.attributions(base, SOURCES[0], "雨停了。", top=3)
        assert bool(rows) == plugin.method.capabilities.offers_reads
        for row in rows:
            assert {"position", "token", "layer", "place", "items"} <= set(row)
            assert len(row["items"]) <= 3
            assert all({"text", "weight"} <= set(item) for item in row["items"])
        json.dumps(rows)
        assert plugin.attributions(base, "word " * 700, "雨停了。") == [], "longer than the base takes at once"


@pytest.mark.parametrize("name", method_names())
class TestRecord:
    def test_its_record_is_whole(self, name: str) -> None:
        record = get_method(name).capabilities
        assert record.title
        assert record.summary.endswith(".")
        assert record.source

    def test_its_settings_have_help_and_survive_json(self, name: str) -> None:
        cls = get_method(name).config_class
        assert all(item.help for item in describe(cls))
        assert cls.from_mapping(json.loads(json.dumps(cls().to_mapping()))) == cls()

    @pytest.mark.parametrize("budget", ["quick", "balanced", "best"])
    def test_every_budget_is_one_of_its_settings(self, name: str, budget: str, asked: Callable[..., Any]) -> None:
        assert method_config(asked(name, Path("x.zip")).replace(budget=budget, method_options={}))


def weights(bundle: Path) -> dict[str, bytes]:
    """{key: bytes} of a bundle's trained weights."""
    from safetensors.torch import load

    with zipfile.ZipFile(bundle) as opened:
        tensors = load(opened.read("adapter_model.safetensors"))
    return {key: value.contiguous().numpy().tobytes() for key, value in tensors.items()}


def test_bad_samples_are_refused_before_any_work(asked: Callable[..., Any], tmp_path: Path) -> None:
    from engine.methods import Capabilities, register, registry
    from engine.methods.memory_adapter.method import MemoryAdapter

    @register
    class Choosy(MemoryAdapter):
        name = "choosy"
        capabilities = Capabilities("Choosy", "Wants more.", "none", needs_bilingual=True, needs_domains=2)

    try:
        with pytest.raises(TailorError, match=r"choosy needs samples with their sources; \d+ of \d+ sentences have none"):
            customize(asked("choosy", tmp_path / "x.zip"), tmp_path / "w", settings=load_settings())
        Choosy.capabilities = Capabilities("Choosy", "Wants more.", "none", needs_domains=2)
        with pytest.raises(TailorError, match="needs samples of 2 or more domains; there is one"):
            customize(asked("choosy", tmp_path / "x.zip"), tmp_path / "w", settings=load_settings())
    finally:
        registry._registered.pop("choosy")
