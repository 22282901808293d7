"""Makes the golden files: a base of 180 kB, a plugin of bundle format 1 on it, and what the two translated when made.

They are made once and kept: tests/unit/plugins/test_golden.py asserts that every later version loads the bundle and translates
with it to the letter. Later bundle formats have golden files of their own beside these; none are made again.

    python tests/golden/make.py FOLDER     (the kept ones are in tests/golden/format-1)
    python tests/golden/make.py FOLDER 2   (a blend of the kept plugin with itself; in tests/golden/format-2)
    python tests/golden/make.py FOLDER 3   (fine-tuning of the kept base; in tests/golden/format-3)
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from engine.base import BaseModel
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.methods import Artefacts, get_method

ROOT = Path(__file__).resolve().parents[2]
SELECTED = ROOT / "tests" / "golden" / "format-1"
sys.path.insert(0, str(ROOT))

OPTIONS = {"phrases_per_layer": 24, "temperature": 0.5, "alpha": 1.0, "beta": 1.0, "memory_dropout": 0.3}
TRAINING = {
    "max_updates": 20,
    "validate_every": 10,
    "tokens_per_batch": 256,
    "learning_rate": 0.003,
    "warmup": 5,
    "patience": 0,
    "max_minutes": None,
}
PHRASES = {"parser": "statistical", "l_max": 4}


def main(folder: Path) -> None:
    from engine.plugins import Plugin
    from engine.workflows.customize.pipeline import customize
    from engine.workflows.customize.request import CustomizeRequest
    from tests.bases import SAMPLES, SENTENCES, make_base

    base_dir = make_base(folder / "base", updates=300, half=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        lines = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:60]
        (work / "samples.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        request = CustomizeRequest(
            base=str(base_dir),
            source="en",
            target="zh",
            samples=(str(work / "samples.txt"),),
            output=str(folder / "plugin.zip"),
            name="Golden",
            budget="quick",
            method_options=OPTIONS,
            training_options=TRAINING,
            phrase_options=PHRASES,
        )
        customize(request, work / "workspace")
        base = BaseModel.load(base_dir, "en", "zh", device="cpu")
        plugin = Plugin.load(folder / "plugin.zip", base, cache=work / "cache")
        sources = [source for source, _ in SENTENCES]
        rows = zip(
            sources,
            translate(base, sources),
            translate(base, sources, plugin, strength=0.6),
            translate(base, sources, plugin),
            strict=True,
        )
        expected = {
            "fingerprint": base.fingerprint(),
            "translations": [dict(zip(("source", "base", "strength_0.6", "plugin"), row, strict=True)) for row in rows],
            "scores": [round(score, 3) for score, _ in score(base, SENTENCES, plugin)],
        }
    text = json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def blend(folder: Path) -> None:
    from engine.plugins.blend import Part, make_blend

    plugin = SELECTED / "plugin.zip"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        twin = shutil.copy(plugin, Path(name) / "twin.zip")
        make_blend(folder / "plugin.zip", "Golden blend", [Part(plugin, 0.6), Part(Path(twin), 0.3)])
    expect(folder)


def tuned(folder: Path) -> None:
    from engine.plugins import BundleContent, export_bundle

    base = kept_base()
    method = get_method("fine_tuning")
    module: Any = method.build(base, Artefacts(), config := method.config_class())
    torch.manual_seed(1)
    for parameter in module.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    method.after_training(module)
    folder.mkdir(parents=True, exist_ok=True)
    content = BundleContent(name="Golden weights", base=base, method=method, config=config, module=module, files={})
    export_bundle(folder / "plugin.zip", content)
    expect(folder)


def kept_base() -> BaseModel:
    return BaseModel.load(SELECTED / "base", "en", "zh", device="cpu")


def expect(folder: Path) -> None:
    """Write what the folder's plugin makes of the sentences."""
    from engine.plugins import Plugin
    from tests.bases import SENTENCES

    base = kept_base()
    with tempfile.TemporaryDirectory() as name:
        plugin = Plugin.load(folder / "plugin.zip", base, cache=Path(name))
        sources = [source for source, _ in SENTENCES]
        rows = zip(sources, translate(base, sources, plugin), strict=True)
        expected = {
            "translations": [dict(zip(("source", "plugin"), row, strict=True)) for row in rows],
            "scores": [round(score, 3) for score, _ in score(base, SENTENCES, plugin)],
        }
    text = json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    {"2": blend, "3": tuned}.get("".join(sys.argv[2:]), main)(Path(sys.argv[1]))
