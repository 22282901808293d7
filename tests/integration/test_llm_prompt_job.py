"""A plugin that prompts a service, by the command line: made without a call, shown in a dry run, refused until allowed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ADDRESS = "http://127.0.0.1:9/v1"  # nothing listens there, and nothing is sent


def test_from_samples_to_a_dry_run(tailormt: Callable[..., Any], tiny: Path, sample: Path, tmp_path: Path) -> None:
    here = ("--base", tiny, "--source", "en", "--target", "zh")
    ran = tailormt(
        "customize", *here, "--samples", sample, "--method", "llm_prompt", "--method-option", "model=small",
        "--method-option", f"base_url={ADDRESS}", "--method-option", "examples=2", "--budget", "quick",
        "--workspace", tmp_path / "w", "-o", tmp_path / "llm.zip",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "not measured, since that would call the service" in ran.out
    assert (tmp_path / "w" / "method" / "preview.json").exists()
    texts = tmp_path / "in.txt"
    texts.write_text("The rain stopped.\n\nHe said nothing.\n", encoding="utf-8")
    use = (*here, "--plugin", tmp_path / "llm.zip", texts)
    dry = tailormt("translate", "--dry-run", *use)
    rows = [json.loads(line) for line in dry.out.splitlines()]
    assert [row["url"] for row in rows] == [f"{ADDRESS}/chat/completions"] * 2
    assert [row["body"]["messages"][-1]["content"] for row in rows] == ["The rain stopped.", "He said nothing."]
    assert all(len(row["body"]["messages"]) == 2 + 2 * 2 for row in rows)
    refused = tailormt("translate", *use)
    assert "which you have not allowed. Set TAILORMT_ENDPOINTS=" in refused.sentence
    plain = tailormt("translate", "--dry-run", *here, texts)
    assert "Nothing would be sent" in plain.out


def test_no_secret_of_the_machine_is_in_a_bundle_or_what_was_said(
    tailormt: Callable[..., Any], tiny: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "canary7f3a9"
    for name in ("OPENAI_API_KEY", "TAILORMT_TOKEN", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, f"{secret}{name}")
    private = tmp_path / "canary-folder"
    private.mkdir()
    mine = private / sample.name
    mine.write_bytes(sample.read_bytes())
    ran = tailormt(
        "customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", mine, "--method", "llm_prompt",
        "--method-option", "model=small", "--method-option", f"base_url={ADDRESS}", "--budget", "quick",
        "--workspace", private / "w", "-o", tmp_path / "llm.zip",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert secret not in ran.out + ran.err
    with zipfile.ZipFile(tmp_path / "llm.zip") as bundle:
        for name in bundle.namelist():
            data = bundle.read(name)
            assert secret.encode() not in data, name
            assert b"canary-folder" not in data, f"{name} names a folder of the machine"
