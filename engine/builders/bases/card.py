"""The card of a trained base: README.md with Hugging Face front matter and the measured figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.builders.bases.decoding_choice import decoding_table
from engine.core.atomic_files import atomic_write
from engine.core.model_card import parse_card
from engine.core.progress import duration


def write_card(folder: Path, figures: Mapping[str, Any], about: str) -> None:
    """Write `folder`/README.md from the figures of a training.

    `about` is Markdown on the origin and terms of the data; its front matter (`license`, `license_name`, `license_note`,
    `pretty_name`, `datasets`) overrides the card's.
    """
    import yaml  # type: ignore[import-untyped]

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    source, target, options = figures["source"], figures["target"], figures["options"]
    size = (folder / "model.safetensors").stat().st_size
    message = parse_card(about)
    front = {
        "pretty_name": f"Base for {source} and {target}", "language": [source, target], "license": "other",
        "license_name": "not-stated", **message.metadata, "library_name": "transformers", "pipeline_tag": "translation",
        "tags": ["marian"],
    }  # fmt: skip
    start = f", going on from `{Path(figures['start']).name}`" if figures["start"] else ""
    text = f"""---
{yaml.safe_dump(front, sort_keys=False, allow_unicode=True).strip()}
---
# {folder.resolve().name}: a base for {source} and {target}, both ways

Marian, {config["encoder_layers"]} encoder and {config["decoder_layers"]} decoder layers of {config["d_model"]} with feed-forward \
layers of {config["encoder_ffn_dim"]} and {config["decoder_ffn_dim"]}, \
{size / 2e6:.1f}M parameters, {size / 2**20:.0f} MiB in half precision. One joint SentencePiece vocabulary of \
{config["vocab_size"]:,} with byte fallback and identity normalisation. A source sentence begins with the tag of its target \
language: `>>{target}<<` or `>>{source}<<`.

## Scores
sacrebleu, beam 4, default decoding. None of these sentences was trained on.

{_scores(figures["scores"])}

{_curve(figures.get("curve", []))}
{_decoding(figures.get("decoding", {}))}## Training data
{message.body.strip() or "Where the data is from and under which terms was not stated by those who trained the model."}

{_files(figures)}

## Training
`tailormt base train`, size `{options["size"]}`{start}: {figures["update"]:,} updates, {figures["tokens"] / 1e6:.1f}M tokens \
of both sides in {duration(figures["seconds"])} on {"a GPU" if figures["device"] == "cuda" else "a CPU"} \
({figures["epoch"]} whole passes over the data). AdamW at {options["learning_rate"]:g} for vectors and embeddings, Muon at \
{options["muon_rate"]:g} for matrices, dropout {options["dropout"]:g}, label smoothing {options["label_smoothing"]:g}, averaged \
weights. Loss on held-out pairs: {figures["valid_loss"]:.3f} nats per token.
"""
    with atomic_write(folder / "README.md", "the card") as temporary:
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


def _decoding(chosen: Mapping[str, Any]) -> str:
    """The settings tried, with the chosen ones in bold; empty if no defaults were chosen."""
    if not chosen:
        return ""
    return f"""## Default decoding
Chosen by BLEU on the first held-out pairs of each file (in bold); used where nothing else is asked for. Length: characters of
the translations over those of the references.

{decoding_table(chosen)}

"""


def _curve(rows: list[dict[str, Any]]) -> str:
    """A Mermaid chart of BLEU over tokens and a table of its figures; empty with fewer than two scored checkpoints."""
    rows = [row for row in rows if any(key.startswith("bleu/") for key in row)]
    if len(rows) < 2:
        return ""
    step = max(1, -(-len(rows) // 20))
    rows = rows[:-1:step] + rows[-1:]
    names = [key for key in rows[-1] if key.startswith("bleu/")]
    labels = [key.removeprefix("bleu/").replace("/", " into ") for key in names]
    tokens = [f"{row['tokens'] / 1e6:.0f}" for row in rows]
    lines = "\n".join(f"  line [{', '.join(str(row.get(name, 0)) for row in rows)}]" for name in names)
    cells = "\n".join(
        f"| {count} | {row['average_loss']:.3f} | " + " | ".join(f"{row.get(name, 0):.1f}" for name in names) + " |"
        for count, row in zip(tokens, rows, strict=True)
    )
    return f"""## How it learnt
BLEU of the first lines of each held-out file over millions of tokens, greedy; lines in the order of the table.

```mermaid
xychart-beta
  x-axis "million tokens" [{", ".join(tokens)}]
  y-axis "BLEU"
{lines}
```

| million tokens | loss | {" | ".join(labels)} |
|---:|---:|{"---:|" * len(names)}
{cells}
"""


def _files(figures: Mapping[str, Any]) -> str:
    lines = ["| file | pairs read | kept | weight | left out |", "|---|---:|---:|---:|---|"]
    for row in figures["files"]:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in sorted(row["skipped"].items(), key=lambda x: -x[1]))
        lines.append(f"| {row['file']} | {row['lines']:,} | {row['kept']:,} | {row['weight']:g} | {skipped or '-'} |")
    longest = figures["options"]["longest"]
    return "\n".join(lines) + f"\n\n{figures['too_long']:,} more pairs have a side of over {longest} pieces and were left out."
