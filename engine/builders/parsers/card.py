"""The card of a parser set: README.md with Hub front matter, the origins and licences of the data, command and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.builders.parsers.train import TrainedParser
from engine.core.atomic_files import atomic_write, write_json
from engine.phrases.languages import plain_code
from engine.phrases.parser_resources import NAMES

FIGURES = "figures.json"
PARTS = {
    "tokenize": "words and sentences",
    "mwt": "contractions",
    "pretrain": "word vectors",
    "pos": "parts of speech",
    "depparse": "dependencies",
    "constituency": "constituents",
}


@dataclass(frozen=True)
class Origins:
    """The licence and origins of the data, as stated by the user."""

    license: str = ""
    license_note: str = ""
    sources: tuple[str, ...] = ()


def write_card(
    trained: TrainedParser, figures: Mapping[str, Any], origins: Origins, command: str, versions: Mapping[str, str]
) -> Path:
    """Write README.md and figures.json beside the set's folders; returns the path of README.md. Raises StorageError."""
    path = trained.home / "README.md"
    facts = {
        "language": trained.language,
        "package": trained.package,
        "processors": list(trained.processors),
        "bytes": trained.bytes,
        "files": trained.files,
        "sizes": trained.sizes,
        "seconds": trained.seconds,
        "versions": dict(versions),
        "command": command,
        "figures": figures,
    }
    write_json(trained.home / FIGURES, facts, "the parser's figures")
    with atomic_write(path, "the parser's card") as temporary:
        temporary.write_text(card_text(trained, figures, origins, command, versions), encoding="utf-8")
    return path


def card_text(
    trained: TrainedParser, figures: Mapping[str, Any], origins: Origins, command: str, versions: Mapping[str, str]
) -> str:
    name = NAMES.get(trained.language, trained.language).replace("_", " ")
    is_identifier = "-" in origins.license and " " not in origins.license and not origins.license.startswith("research")
    front = {
        "pretty_name": f"Small {name} parser",
        "language": [plain_code(trained.language)],
        "license": origins.license if is_identifier else "other",
        **({} if is_identifier or not origins.license else {"license_name": origins.license.replace(" ", "-")}),
        **({"license_note": origins.license_note} if origins.license_note else {}),
        "library_name": "stanza",
        "pipeline_tag": "token-classification",
        "tags": ["stanza", "parser", *(["constituency"] if "constituency" in trained.processors else []), "dependency"],
    }
    # JSON is valid YAML and quotes every value.
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items())
    parts = ", ".join(f"{PARTS[name]} (`{name}`)" for name in trained.processors)
    blocks = [
        f"---\n{head}\n---\n# {front['pretty_name']}",
        f"A set of stanza models, {trained.bytes / 1e6:.1f} MB: {parts}. It gives Tailor MT the phrases of {name} samples "
        "without a network.",
        f'```python\nstanza.Pipeline("{trained.language}", dir="FOLDER", download_method=None)\n```\nFOLDER is the one above '
        "this card, with `resources.json`.",
        "## Data and licences\n\n" + bullets(origins.sources or ("not stated",)),
        file_table(trained),
        *trained.notes,
        f"## How it was made\n\nBy stanza's own trainers ({', '.join(f'{k} {v}' for k, v in versions.items())}), without a "
        f"character language model and without the optimizer's state:\n\n```\n{command}\n```",
        figures_text(trained, figures),
        "## Limits\n\n"
        + bullets(
            (
                "Small models from small treebanks: the parsers that stanza offers for download are better and larger.",
                "Lemmas are the words themselves; features are not predicted.",
                "`.pt` files are pickles by format; stanza 1.15 reads them with `weights_only=True`, which runs no code.",
            )
        ),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def file_table(trained: TrainedParser) -> str:
    rows = ["| file | kind | used as | sentences | skipped |", "|---|---|---|---:|---:|"]
    for file in trained.files:
        skipped = sum(file["skipped"].values())
        rows.append(f"| {file['name']} | {file['kind']} | {file['part'] or 'train'} | {file['kept']:,} | {skipped or 0:,} |")
    sizes = trained.sizes
    learnt = f"{sizes['sentences_train']:,} sentences"
    if sizes["trees_train"]:
        learnt += f" and {sizes['trees_train']:,} constituency trees"
    return "\n".join(rows) + f"\n\nLearnt from: {learnt}. Nothing below was measured on sentences that it learnt from."


def figures_text(trained: TrainedParser, figures: Mapping[str, Any]) -> str:
    blocks = ["## Figures"]
    if result := figures.get("dependency"):
        raw, given_words = result["raw"], result["given_words"]
        names = ("Tokens", "Words", "UPOS", "UAS", "LAS")
        blocks.append(
            f"On {result['sentences']:,} held-out sentences, F1 in percent as the CoNLL 2018 shared task counts it; sentence "
            "ends are given.\n\n"
            f"| from | {' | '.join(names)} |\n|---|{'---:|' * len(names)}\n"
            f"| raw text | {' | '.join(percent(raw[name]) for name in names)} |\n"
            f"| given words | {' | '.join(percent(given_words[name]) if name in given_words else '' for name in names)} |"
        )
    if result := figures.get("constituency"):
        scores = result["given_words"]
        blocks.append(
            f"Constituents on {result['sentences']:,} held-out trees with the words given: labelled bracket F1 "
            f"{percent(scores['f1'])} (precision {percent(scores['precision'])}, recall {percent(scores['recall'])}), tags "
            f"{percent(scores['XPOS'])}."
        )
    for kind in ("constituency", "dependency"):
        if result := figures.get(kind):
            blocks.append(phrase_table(kind, result["phrases"]))
    speeds = [
        f"{figures[kind]['sentences_per_second']:,.0f} ({kind})" for kind in ("constituency", "dependency") if kind in figures
    ]
    if speeds:
        blocks.append(f"Speed, from raw text, in sentences per second of one CPU core: {', '.join(speeds)}.")
    return "\n\n".join(blocks) if len(blocks) > 1 else ""


def phrase_table(kind: str, scores: Mapping[str, Mapping[str, float]]) -> str:
    rows = ["| length | gold phrases | precision | recall | F1 |", "|---|---:|---:|---:|---:|"]
    for name, row in scores.items():
        rows.append(f"| {name} | {row['gold']:,} | {percent(row['precision'])} | {percent(row['recall'])} | {percent(row['f1'])} |")
    unit = "constituents" if kind == "constituency" else "contiguous dependency subtrees"
    return (
        f"Phrases from raw text ({unit}) against those that the same extraction takes from the gold trees; a phrase is "
        "right when it covers the same characters.\n\n" + "\n".join(rows)
    )


def percent(share: float) -> str:
    return f"{100 * share:.1f}"
