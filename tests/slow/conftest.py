"""What slow tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bases import SAMPLES, SENTENCES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The layout of the public data, with texts of our own."""
    folder = tmp_path / "data"
    (folder / "mtsc").mkdir(parents=True)
    (folder / "heldout").mkdir()
    style = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:80]
    (folder / "mtsc/train.luxun.random.zh").write_text("\n".join(style[:60]) + "\n", encoding="utf-8")
    (folder / "mtsc/dev.luxun.random.zh").write_text("\n".join(style[60:]) + "\n", encoding="utf-8")
    for index, language in enumerate(("en", "zh")):
        text = "".join(f"{pair[index]}\n" for pair in SENTENCES)
        (folder / f"mtsc/test.luxun.{language}").write_text(text, encoding="utf-8")
    pairs = "".join(f"{a}\t{b}\n" for a, b in SENTENCES)
    (folder / "heldout/ntrex.en-zh.tsv").write_text(pairs, encoding="utf-8")
    return folder
