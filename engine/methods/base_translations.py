"""The frozen base's translations of the samples' sources, for methods that learn how the samples differ from them.

Also stores the settings passed to `Method.prepare` in the workspace, since `Method.encode` needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.base.decoding_options import Decoding
from engine.core.atomic_files import read_json, read_jsonl, write_json, write_jsonl
from engine.core.progress import Progress
from engine.corpora.types import SentencePair
from engine.methods.data import Samples

FILE = "machine.jsonl"
SETTINGS = "settings.json"


def keep_settings(samples: Samples, config: Any) -> None:
    """Write a method's settings to its workspace. The workspace is emptied when they change."""
    write_json(samples.workspace / SETTINGS, config.to_mapping(), "the method's settings")


def prepared_settings(samples: Samples, cls: Any) -> Any:
    """The settings stored by `keep_settings`, or the defaults if there are none."""
    return cls.from_mapping(read_json(samples.workspace / SETTINGS))


def machine_translations(samples: Samples, pairs: Sequence[SentencePair], beam: int, progress: Progress, part: str) -> list[str]:
    """The base's translation of each pair's source by beam search, in order.

    Translations are cached by source in `machine.jsonl` in the method's workspace. An interrupted run is resumed.
    """
    file = samples.workspace / FILE
    translations: dict[str, str] = {row["source"]: row["machine"] for row in read_jsonl(file)} if file.exists() else {}
    missing = list(dict.fromkeys(pair.source for pair in pairs if pair.source not in translations))
    if missing:
        from engine.decoding.resumable import back_translate_all

        search = Decoding(beam=beam, no_repeat_ngram=3)
        before = progress.step
        progress.begin("Translating the sources", progress.index, progress.steps)
        partial = samples.workspace / f"machine.{part}.partial.jsonl"
        translated = back_translate_all(samples.pair.forward, missing, partial, progress, search)
        translations |= dict(zip(missing, translated, strict=True))
        write_jsonl(file, ({"source": a, "machine": b} for a, b in translations.items()), "the translations")
        progress.begin(before, progress.index, progress.steps)
    return [translations[pair.source] for pair in pairs]
