"""`tailormt demo`: the whole main job on a bundled sample, for a first look and for a check of an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.errors import MissingError
from engine.progress import Progress, duration
from engine.settings import Settings
from engine.terminal import table

__all__ = ["demo"]

SAMPLE, INPUT, SOURCE, TARGET = "literary-zh/literary-zh.txt", "demo.en.txt", "en", "zh"


def demo(settings: Settings, folder: Path, progress: Progress) -> tuple[dict[str, Any], str]:
    """Make a plugin from the bundled literary Chinese sample and translate twelve sentences with and without it.

    Writes `folder`/literary-zh.zip; returns (summary with translations, text to show). Stopped and run again, it goes on.
    """
    from engine.base import BaseModel
    from engine.pipeline import CustomizeRequest, customize
    from engine.plugins import Plugin

    base_dir, samples = settings.assets_dir / "models" / "en-zh", settings.assets_dir / "samples"
    for path in (base_dir, samples / SAMPLE, samples / INPUT):
        if not path.exists():
            raise MissingError(
                f"The demo needs {path}, which is not there. Run it from a complete copy of the project."
            )
    bundle = folder / "literary-zh.zip"
    request = CustomizeRequest(
        base=str(base_dir),
        source=SOURCE,
        target=TARGET,
        samples=(str(samples / SAMPLE),),
        budget="quick",
        output=str(bundle),
        name="Literary Chinese",
    )
    summary = customize(request, folder / "workspace", progress, settings)
    sources = (samples / INPUT).read_text(encoding="utf-8").splitlines()
    base = BaseModel.load(base_dir, SOURCE, TARGET, settings=settings)
    plugin = Plugin.load(bundle, base, cache=settings.home_dir / "unpacked")
    progress.begin("Translating twelve sentences, without and with the plugin")
    vanilla, customized = base.translate(sources), base.translate(sources, plugin)
    rows = list(zip(sources, vanilla, customized, strict=True))
    after = base.translate(sources[:2])
    figures = summary["metrics"]
    text = "\n".join(
        [
            "",
            table(["English", "vanilla: the base as it is", "with the plugin"], rows),
            "",
            f"{summary['sentences']} sentences of literary Chinese became {sum(summary['memory']):,} remembered phrases and "
            f"{summary['updates']} updates of training in {duration(summary['seconds']['total'])}.",
            f"On {figures['held_out_sentences']} held-out sentences the loss fell from {figures['validation_loss_before']:.3f} to "
            f"{figures['validation_loss']:.3f} nats a token.",
            "The base is small and weak; the plugin changes its manner, not its knowledge. "
            + ("Without the plugin it translates as before, to the letter." if after == vanilla[:2] else ""),
            "",
            f"The plugin is {bundle} ({bundle.stat().st_size / 2**20:.0f} MiB).",
            "See it in the studio: make studio",
        ]
    )
    translations = [dict(zip(("source", "vanilla", "customized"), row, strict=True)) for row in rows]
    return {**summary, "translations": translations}, text
