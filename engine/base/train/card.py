"""The card of a trained base: README.md with Hugging Face's front matter, made of what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.files import replacing
from engine.progress import duration

__all__ = ["write_card"]


def write_card(folder: Path, figures: Mapping[str, Any], about: str) -> None:
    """Write `folder`/README.md from a training's figures.

    `about` is Markdown on where the data is from and its terms; its front matter (`license`, `license_name`,
    `license_note`, `pretty_name`, `datasets`) becomes the card's.
    """
    import yaml  # type: ignore[import-untyped]

    from engine.cards import parse_card

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    source, target, options = figures["source"], figures["target"], figures["options"]
    size = (folder / "model.safetensors").stat().st_size
    told = parse_card(about)
    front = {
        "pretty_name": f"Base for {source} and {target}", "language": [source, target], "license": "other",
        "license_name": "not-stated", **told.metadata, "library_name": "transformers", "pipeline_tag": "translation",
        "tags": ["marian"],
    }  # fmt: skip
    start = f", going on from `{Path(figures['start']).name}`" if figures["start"] else ""
    text = f"""---
{yaml.safe_dump(front, sort_keys=False, allow_unicode=True).strip()}
---
# {folder.resolve().name}: a base for {source} and {target}, both ways

Marian, {config["encoder_layers"]} encoder and {config["decoder_layers"]} decoder layers of {config["d_model"]}, \
{size / 2e6:.1f}M parameters, {size / 2**20:.0f} MiB in half precision. One joint SentencePiece vocabulary of \
{config["vocab_size"]:,} with byte fallback and identity normalisation. A source sentence begins with the tag of its target \
language: `>>{target}<<` or `>>{source}<<`.

## Scores
sacrebleu, beam 4, default decoding. None of these sentences was trained on.

{_scores(figures["scores"])}

## Training data
{told.body.strip() or "Where the data is from and under which terms was not stated by those who trained the model."}

{_files(figures)}

## Training
`tailormt base train`, size `{options["size"]}`{start}: {figures["update"]:,} updates, {figures["tokens"] / 1e6:.1f}M tokens \
of both sides in {duration(figures["seconds"])} on {"a GPU" if figures["device"] == "cuda" else "a CPU"} \
({figures["epoch"]} whole passes over the data). AdamW at {options["learning_rate"]:g} for vectors and embeddings, Muon at \
{options["muon_rate"]:g} for matrices, dropout {options["dropout"]:g}, label smoothing {options["label_smoothing"]:g}, averaged \
weights. Loss on held-out pairs: {figures["valid_loss"]:.3f} nats a token.
"""
    with replacing(folder / "README.md", "the card") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _scores(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "Not scored: no held-out file was given."
    lines = ["| file | direction | lines | BLEU | chrF2 |", "|---|---|---:|---:|---:|"]
    lines += [
        f"| {row['file']} | {row['source']} to {row['target']} | {row['lines']:,} | {row['bleu']:.1f} | {row['chrf']:.1f} |"
        for row in rows
    ]
    signatures = dict.fromkeys(row[key] for row in rows for key in ("bleu_signature", "chrf_signature"))
    return "\n".join(lines) + "\n\nSignatures: " + ", ".join(f"`{text}`" for text in signatures) + "."


def _files(figures: Mapping[str, Any]) -> str:
    lines = ["| file | pairs read | kept | weight | left out |", "|---|---:|---:|---:|---|"]
    for row in figures["files"]:
        skipped = ", ".join(
            f"{count:,} {reason}" for reason, count in sorted(row["skipped"].items(), key=lambda x: -x[1])
        )
        lines.append(f"| {row['file']} | {row['lines']:,} | {row['kept']:,} | {row['weight']:g} | {skipped or '-'} |")
    longest = figures["options"]["longest"]
    return (
        "\n".join(lines)
        + f"\n\n{figures['too_long']:,} more pairs have a side of over {longest} pieces and were left out."
    )
