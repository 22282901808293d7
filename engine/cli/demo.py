"""`tailormt demo`: customizes a base with a bundled sample, as an introduction and to check an installation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.terminal import comparison
from engine.core.progress import Progress, duration
from engine.core.settings import Settings
from engine.core.text_table import table
from engine.errors import MissingError


@dataclass(frozen=True)
class Demo:
    """A bundled sample, and sentences to demonstrate its style."""

    source: str
    target: str
    style: str
    sample: str  # folder and stem of its file in assets/samples
    source_name: str
    inputs: str  # file with twelve sentences in assets/samples


DEMOS = {
    "zh": Demo("en", "zh", "Chinese literary prose", "literary-zh", "English", "demo.literary.en.txt"),
    "en": Demo("de", "en", "Elizabethan English", "elizabethan-en", "German", "demo.de.txt"),
}


def demo(settings: Settings, folder: Path, progress: Progress, to: str = "zh") -> tuple[dict[str, Any], str]:
    """Make a plugin from the bundled sample in language `to` and translate twelve sentences with and without it.

    Writes `folder`/SAMPLE.zip; returns (summary with translations, text to print). Resumes when run again after a stop. Raises
    MissingError if files of the project are missing.
    """
    from engine.base import BaseModel
    from engine.decoding.translate import translate
    from engine.plugins import Plugin
    from engine.workflows.customize.pipeline import customize
    from engine.workflows.customize.request import CustomizeRequest

    chosen = DEMOS[to]
    samples = settings.assets_dir / "samples"
    base_dir = settings.assets_dir / "models" / f"{chosen.source}-{chosen.target}"
    sample, inputs = samples / chosen.sample / f"{chosen.sample}.txt", samples / chosen.inputs
    for path in (base_dir, sample, inputs):
        if not path.exists():
            raise MissingError(f"The demo needs {path}, which is not there. Run it from a complete copy of the project.")
    bundle = folder / f"{chosen.sample}.zip"
    request = CustomizeRequest(
        base=str(base_dir),
        source=chosen.source,
        target=chosen.target,
        samples=(str(sample),),
        budget="quick",
        output=str(bundle),
        name=chosen.style[0].upper() + chosen.style[1:],
    )
    summary = customize(request, folder / f"workspace-{to}", progress, settings)
    sources = inputs.read_text(encoding="utf-8").splitlines()
    base = BaseModel.load(base_dir, chosen.source, chosen.target, settings=settings)
    plugin = Plugin.load(bundle, base, cache=settings.home_dir / "unpacked")
    progress.begin("Translating twelve sentences, without and with the plugin")
    vanilla, customized = translate(base, sources), translate(base, sources, plugin)
    rows = list(zip(sources, vanilla, customized, strict=True))
    after = translate(base, sources[:2])
    unaffected = plugin.shares(base, sources).count(0.0)
    metrics = summary["metrics"]
    text = "\n".join(
        [
            "",
            table([chosen.source_name, "vanilla: the base as it is", "with the plugin"], rows),
            *(
                ["", f"The plugin's domain filter left {unaffected} of the twelve, as unlike the samples, to the base."]
                if unaffected
                else []
            ),
            "",
            comparison(summary["tried"]),
            "",
            f"{summary['sentences']} sentences of {chosen.style} became this plugin in {duration(summary['seconds']['total'])}. "
            f"On {metrics['held_out_sentences']} other held-out sentences: BLEU {metrics['bleu_vanilla']} without it, "
            f"{metrics['bleu']} with it.",
            "The base is small and weak; the plugin changes its manner, not its knowledge. "
            + ("Without the plugin it translates as before, to the letter." if after == vanilla[:2] else ""),
            "",
            f"The plugin is {bundle} ({bundle.stat().st_size / 2**20:.0f} MiB).",
            "See it in the studio: make studio",
        ]
    )
    translations = [dict(zip(("source", "vanilla", "customized"), row, strict=True)) for row in rows]
    return {**summary, "translations": translations}, text
