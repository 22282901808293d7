"""A plugin tried before it is taken in: three sentences translated in a process of its own, with limits of time and memory.

    python -m engine.plugins.trial < request.json

What a file does to the program that reads it is known once it was read; here it is read where nothing else can come to harm.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError, TailorError

if TYPE_CHECKING:
    from engine.base import BaseModel

SECONDS = 120.0  # by the clock
MEMORY = 24 << 30  # bytes of address space, much of which is never touched
SENTENCES = 3
PLAIN = ["1.", "2.", "3."]  # where no general text of the source language is bundled


def try_bundle(path: Path, base: BaseModel, cache: Path | None, seconds: float = SECONDS) -> list[str]:
    """The translations of three everyday sentences. Raises BundleError where that takes too long, fails or ends its process."""
    from engine.core.settings import load_settings
    from engine.corpora.general_text import general_sentences

    sentences = (general_sentences(load_settings().assets_dir, base.source) or PLAIN)[:SENTENCES]
    request = {
        "bundle": str(path), "base": str(base.folder), "source": base.source, "target": base.target, "sentences": sentences,
        "cache": str(cache) if cache else "",
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=json.dumps(request), capture_output=True, text=True, timeout=seconds,
            check=False, encoding="utf-8", errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise BundleError(
            "{path}: it did not translate three sentences within {count:.0f} s. Do not use it.",
            path=path,
            count=seconds,
        ) from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise BundleError("{path}: translating three sentences ended the process. Do not use it.", path=path) from None
    if error := answer.get("error"):
        raise BundleError("{path}: it cannot translate. {error}", path=path, error=error)
    translations: list[str] = answer["translations"]
    return translations


def translations(request: dict[str, Any]) -> list[str]:
    """What the process does. Raises TailorError."""
    from engine.base import BaseModel
    from engine.decoding.translate import translate
    from engine.plugins.plugin import Plugin

    base = BaseModel.load(request["base"], request["source"], request["target"], device="cpu")
    plugin = Plugin.load(request["bundle"], base, cache=Path(request["cache"]) if request["cache"] else None)
    return [str(line) for line in translate(base, request["sentences"], plugin)]


def main() -> None:
    """Limits first, then the trial; the last line of the output is its result as JSON."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, OSError, ValueError):  # there are none on Windows, and some systems have lower ones
        pass
    try:
        answer: dict[str, Any] = {"translations": translations(json.load(sys.stdin))}
    except TailorError as error:
        answer = {"error": str(error)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}."}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
