"""What plugins are compared with on general text: the base alone, translated once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.workflows.customize.evaluate import general_baseline
from tests.bases import tiny_base


def test_general_text_by_the_base_alone_is_translated_once_for_all_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, asked = tiny_base(), list[Sequence[str]]()

    def translated(base: Any, texts: Sequence[str], **more: Any) -> list[str]:
        asked.append(texts)
        return [f"{text}!" for text in texts]

    monkeypatch.setattr("engine.decoding.translate.translate", translated)
    settings, texts = Settings(home=str(tmp_path)), ["One.", "Two."]
    assert general_baseline(base, texts, settings, Progress()) == ["One.!", "Two.!"]
    assert general_baseline(base, texts, settings, Progress()) == ["One.!", "Two.!"]
    assert asked == [texts]
    general_baseline(base, ["Three."], settings, Progress())
    assert len(asked) == 2, "other sentences are other work"
