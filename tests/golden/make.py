"""Makes the golden files: a base of 180 kB, a plugin of bundle format 1 on it, and what the two translated when made.

They are made once and kept: tests/unit/plugins/test_golden.py asserts that every later version loads the bundle and translates
with it to the letter. A bundle format 2 gets golden files of its own beside these; these are not made again.

    python tests/golden/make.py FOLDER     (the kept ones are in tests/golden/format-1)
    python tests/golden/make.py FOLDER 2   (a blend of the kept plugin with itself; in tests/golden/format-2)
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from engine.decoding.scoring import score
from engine.decoding.translate import translate

ROOT = Path(__file__).resolve().parents[2]
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
    from engine.base import BaseModel
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
    from engine.base import BaseModel
    from engine.plugins import Plugin
    from engine.plugins.blend import Part, make_blend
    from tests.bases import SENTENCES

    selected = ROOT / "tests" / "golden" / "format-1"
    base = BaseModel.load(selected / "base", "en", "zh", device="cpu")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        twin = shutil.copy(selected / "plugin.zip", Path(name) / "twin.zip")
        make_blend(folder / "plugin.zip", "Golden blend", [Part(selected / "plugin.zip", 0.6), Part(Path(twin), 0.3)])
        plugin = Plugin.load(folder / "plugin.zip", base, cache=Path(name) / "cache")
        sources = [source for source, _ in SENTENCES]
        rows = zip(sources, translate(base, sources, plugin), strict=True)
        expected = {
            "translations": [dict(zip(("source", "plugin"), row, strict=True)) for row in rows],
            "scores": [round(score, 3) for score, _ in score(base, SENTENCES, plugin)],
        }
    text = json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    blend(Path(sys.argv[1])) if sys.argv[2:] == ["2"] else main(Path(sys.argv[1]))
