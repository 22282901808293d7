#!/usr/bin/env python3
"""The parsers in assets/parsers on treebank sentences they have never seen, and on the sample corpora.

    python bench/parsers.py                                   # all three, with the treebanks beside the project
    python bench/parsers.py --parsers DIR --language de --treebanks FOLDER

A folder of treebanks holds a folder a language, as `tailormt parser train` was given them: the split is the same, so only
held-out sentences are measured. Without treebanks only the speed on the samples is told. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.builders.parsers.measure import measure  # noqa: E402
from engine.builders.parsers.treebanks import read_treebanks  # noqa: E402
from engine.phrases import PhraseOptions, extract_phrases  # noqa: E402
from engine.phrases.parser_resources import set_bytes  # noqa: E402
from engine.phrases.stanza_models import cached_pipeline, find_models, load_pipeline  # noqa: E402

LANGUAGES = ("en", "zh-hans", "de")
SAMPLES = {"en": "elizabethan-en/elizabethan-en.txt", "zh-hans": "literary-zh/literary-zh.txt", "de": "letters-de-en/letters.tsv"}
SHOWN_LENGTHS = ("1", "2", "3-4", "5-7", "8-10", "2+", "all")


def on_samples(language: str, folder: Path) -> dict[str, Any]:
    """Loading time, and the extraction over the language's sample corpus, parser against statistics."""
    result: dict[str, Any] = {}
    for kind in ("constituency", "dependency"):
        models = list(find_models(language, kind, [folder]))
        if models:
            cached_pipeline.cache_clear()
            begun = time.perf_counter()
            load_pipeline(models[0])
            result[f"{kind}_loading_seconds"] = round(time.perf_counter() - begun, 2)
    file = ROOT / "assets" / "samples" / SAMPLES[language]
    if not file.is_file():
        return result
    sentences = [line.split("\t")[0] for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    for parser in ("auto", "statistical"):
        begun = time.perf_counter()
        phrases = extract_phrases(sentences, language, PhraseOptions(parser=parser), parser_dirs=[folder])
        result[parser] = {
            "sentences": len(sentences),
            "seconds": round(time.perf_counter() - begun, 1),
            "phrases": len(list(phrases)),
            "by_length": dict(sorted(Counter(phrase.length for phrase in phrases).items())),
            "parser": phrases.parser,
        }
    return result


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(results: dict[str, Any]) -> str:
    lines = [
        "| set | MB | tokens | UPOS | UAS | LAS | UAS, words given | LAS, words given | bracket F1, words given | sentences/s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    phrases = ["| set | by | " + " | ".join(SHOWN_LENGTHS) + " |", "|---|---|" + "---|" * len(SHOWN_LENGTHS)]
    for language, result in results.items():
        dep, const = result.get("dependency"), result.get("constituency")
        if dep:
            raw, given = dep["raw"], dep["given_words"]
            speed = f"{dep['sentences_per_second']:.0f}" + (
                f", {const['sentences_per_second']:.0f} with constituents" if const else ""
            )
            cells = [percent(raw[name]) for name in ("Tokens", "UPOS", "UAS", "LAS")]
            cells += [percent(given["UAS"]), percent(given["LAS"]), percent(const["given_words"]["f1"]) if const else ""]
            lines.append(f"| {language} | {result['bytes'] / 1e6:.1f} | " + " | ".join(cells) + f" | {speed} |")
        for kind, scores in (("constituents", const), ("dependencies", dep)):
            if scores:
                rows = [scores["phrases"].get(name) for name in SHOWN_LENGTHS]
                cells = [f"{percent(row['precision'])} / {percent(row['recall'])}" if row else "" for row in rows]
                phrases.append(f"| {language} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "Phrases, precision / recall by length in tokens, from raw text:", "", *phrases])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parsers", type=Path, default=ROOT / "assets" / "parsers")
    parser.add_argument("--treebanks", type=Path, default=ROOT.parent / "shared" / "data" / "treebanks")
    parser.add_argument("--language", action="append", choices=LANGUAGES)
    parser.add_argument("--out", type=Path, help="write all figures as JSON here")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    for language in args.language or LANGUAGES:
        if not (args.parsers / language).is_dir():
            print(f"no parser for {language} in {args.parsers}", file=sys.stderr)
            continue
        results[language] = {"bytes": set_bytes(args.parsers, language, "tailor")}
        results[language]["samples"] = on_samples(language, args.parsers)
        files = sorted((args.treebanks / language).glob("*"))
        if files:
            results[language] |= measure(language, args.parsers, read_treebanks(files))
    if args.out:
        args.out.write_text(json.dumps(results, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(table(results))
    for language, result in results.items():
        print(language, json.dumps(result["samples"], ensure_ascii=False))


if __name__ == "__main__":
    main()
