"""Plugins over one base share it: there is one copy of its weights in memory, however many plugins are loaded."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.settings import load_settings
from engine.errors import ModelError
from engine.serving.batcher import Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache

TEXTS = ["The rain stopped.", "He said nothing."]


@pytest.fixture
def bundles(bundle: Path, tmp_path: Path) -> list[Path]:
    """Three plugins of one base."""
    return [Path(shutil.copy(bundle, tmp_path / f"{name}.zip")) for name in "abc"]


def copies_of(base: Any) -> dict[str, int]:
    """For each large weight of the base, how many memories there are that hold its very numbers."""
    gc.collect()
    # oneDNN's layouts of the weights (engine/base/onednn.py) cannot be compared with them; there is one a base.
    tensors = [obj for obj in gc.get_objects() if type(obj) in (torch.Tensor, torch.nn.Parameter) and obj.layout is torch.strided]
    result = {}
    for name, weight in base.model.named_parameters():
        if weight.ndim == 2:
            alike = [tensor for tensor in tensors if tensor.shape == weight.shape and torch.equal(tensor.detach(), weight.detach())]
            result[name] = len({tensor.data_ptr() for tensor in alike})
    return result


@pytest.mark.slow
def test_serving_several_plugins_holds_the_base_once(tiny: Path, bundles: list[Path]) -> None:
    batcher = Batcher(ModelCache(load_settings()))
    works = [TranslationSpec.of(str(tiny), "en", "zh", str(bundle)) for bundle in bundles]
    for work in [TranslationSpec.of(str(tiny), "en", "zh"), *works, *works]:
        assert len(batcher.submit(work, TEXTS).result(300)) == 2
    loaded = batcher.models.base(str(tiny), "en", "zh")
    pointers = {parameter.data_ptr() for parameter in loaded.model.parameters()}
    plugins = [batcher.models.plugin(str(bundle), loaded) for bundle in bundles]
    assert len({id(plugin) for plugin in plugins}) == 3
    for plugin in plugins:
        assert not pointers & {tensor.data_ptr() for tensor in plugin.module.state_dict().values() if tensor.numel()}
    copies = copies_of(loaded)
    assert copies
    others = copies_of(batcher.models.base(str(tiny), "zh", "en"))
    assert copies == others  # the other direction is the same model
    # The fixtures of other tests may hold this base too: what is counted here must not grow with plugins.
    for work in works:
        batcher.submit(work, TEXTS).result(300)
    assert copies_of(loaded) == copies
    assert {parameter.data_ptr() for parameter in loaded.model.parameters()} == pointers


def test_a_base_whose_files_were_replaced_is_loaded_again(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    shutil.copytree(tiny, folder)
    models = ModelCache(load_settings())
    with pytest.raises(ModelError):
        models.base(str(tmp_path / "missing"), "en", "zh")
    first = models.base(str(folder), "en", "zh")
    (folder / "training").mkdir()
    (folder / "training" / "metrics.jsonl").write_text("{}\n", encoding="utf-8")
    assert models.base(str(folder), "en", "zh") is first, "a training writes beside it"
    shutil.copy(tiny / "model.safetensors", folder / "fresh")
    (folder / "fresh").replace(folder / "model.safetensors")
    assert models.base(str(folder), "en", "zh") is not first
    second = models.base(str(folder), "zh", "en")
    shutil.rmtree(folder)
    assert models.base(str(folder), "zh", "en") is second, "it still translates where its folder is gone"


def test_the_command_line_loads_the_base_once_for_all_plugins(
    tiny: Path, bundles: list[Path], tmp_path: Path, tailormt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.base import load
    from engine.plugins import Plugin

    opened: list[Any] = []
    bases: list[Any] = []
    real, real_plugin = load.load_folder, Plugin.load.__func__  # type: ignore[attr-defined]

    def counted(*args: Any) -> Any:
        opened.append(real(*args))
        return opened[-1]

    def seen(cls: Any, path: Any, base: Any, *args: Any, **named: Any) -> Any:
        bases.append(base)
        return real_plugin(cls, path, base, *args, **named)

    monkeypatch.setattr(load, "load_folder", counted)
    monkeypatch.setattr(Plugin, "load", classmethod(seen))
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    flags = [word for bundle in bundles[:2] for word in ("--plugin", bundle)]
    done = tailormt("compare", "--base", tiny, "--source", "en", "--target", "zh", *flags, tmp_path / "in.txt")
    assert done.code == 0, done.err
    assert len(opened) == 1
    assert len(bases) == 2
    assert {parameter.data_ptr() for parameter in bases[0].model.parameters()} == {
        parameter.data_ptr() for parameter in bases[1].model.parameters()
    }
