"""What the first look says of its sentences: what comes back when they are translated back, and which repeat themselves."""

from __future__ import annotations

from typing import Any

import pytest

from engine.core.progress import Progress
from engine.workflows import preview


def test_what_comes_back_and_what_repeats_itself_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    back = {"雨停了。": "The rain stopped.", "将将将将将": "will be willing to", "开门。": "The rain stopped."}
    monkeypatch.setattr("engine.decoding.greedy_search.back_translate", lambda model, texts, **more: [back[text] for text in texts])
    rows: list[dict[str, Any]] = [
        {"source": "The rain stopped.", "vanilla": "雨停了。", "customized": "将将将将将"},
        {"source": "He opened the door.", "vanilla": "开门。", "customized": "雨停了。"},
    ]
    preview._check(rows, None, Progress())  # type: ignore[arg-type]
    assert rows[0]["agreement"]["vanilla"] == 100
    assert rows[0]["agreement"]["customized"] < 30
    assert [row["flags"] for row in rows] == [{"customized": "repetition"}, {}]
    assert [preview.understood(row) for row in rows] == [True, False]
    assert preview.understood({"source": "An older look."})
    assert not preview.understood(rows[0] | {"vanilla": "the rain  stopped."}), "the base copies it"
    assert preview._means(rows[:1]) == {"agreement_base": 100, "agreement": rows[0]["agreement"]["customized"]}
    assert preview._means([]) == {}
