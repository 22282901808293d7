"""Translating through Tailor MT's beam search against `transformers.generate`, and against CTranslate2 where it is installed;
in float32, and in int8 where the processor can.

    python bench/decoding.py --texts ../shared/data/heldout/ntrex.en-zh.tsv --lines 96
    python bench/decoding.py --batch 128 --rounds 7
    python bench/decoding.py --plugin mine.zip --plugin other.zip       # and our search with these plugins

The same base, sentences, batches and settings (beam 4); the systems take turns within one run, and the table has medians. CPU
seconds say more than the clock on a machine with other work. Outputs are compared line by line.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BEAM = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=str(ROOT / "assets/models/en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--texts", type=Path, default=ROOT / "assets/samples/demo.en.txt", help="sentences, or pairs by tabs")
    parser.add_argument("--column", type=int, default=0, help="of pairs, the column with the sources [0]")
    parser.add_argument("--lines", type=int, default=96)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--plugin", type=Path, action="append", default=[], help="a bundle; may be given several times")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    import torch

    from engine.base import BaseModel
    from engine.base.int8 import available
    from engine.plugins import Plugin

    if args.threads:
        torch.set_num_threads(args.threads)
    base = BaseModel.load(args.base, args.source, args.target, device="cpu")
    lines = [line.split("\t")[args.column] for line in args.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = lines[: args.lines]
    rows = base.encode(lines)
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    batches = [order[i : i + args.batch] for i in range(0, len(order), args.batch)]
    with tempfile.TemporaryDirectory() as folder:
        systems = {"transformers.generate": library(base, rows, batches), "Tailor MT": ours(base, rows, batches)}
        if available():
            quantized = BaseModel.load(args.base, args.source, args.target, device="cpu", precision="int8")
            systems["Tailor MT, int8"] = ours(quantized, rows, batches)
        for file in args.plugin:
            systems[f"Tailor MT with {file.stem}"] = customized(base, lines, batches, Plugin.load(file, base))
        systems |= ctranslate(args, base, rows, batches, Path(folder))
        measure(systems, args, sum(len(line.split()) for line in lines))


def measure(systems: dict[str, Callable[[], list[str]]], args: argparse.Namespace, words: int) -> None:
    import torch

    wall: dict[str, list[float]] = {name: [] for name in systems}
    cpu: dict[str, list[float]] = {name: [] for name in systems}
    texts: dict[str, list[str]] = {}
    for number in range(args.rounds + 1):  # the first round is not counted
        for name, run in systems.items():
            begin, used = time.perf_counter(), time.process_time()
            with torch.inference_mode():
                texts[name] = run()
            if number:
                wall[name].append(time.perf_counter() - begin)
                cpu[name].append(time.process_time() - used)
    first = "transformers.generate"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    print(f"{len(texts[first])} sentences, {words:,} words, batches of {args.batch}, beam {BEAM}, medians of {args.rounds}\n")
    print("| | wall s | CPU s | words a second (CPU) | times as fast (CPU) | same output |\n|---|---:|---:|---:|---:|---:|")
    for name in systems:
        same = sum(a == b for a, b in zip(texts[name], texts[first], strict=True))
        clock, spent = statistics.median(wall[name]), statistics.median(cpu[name])
        ratio = statistics.median(cpu[first]) / spent
        print(f"| {name} | {clock:.2f} | {spent:.2f} | {words / spent:.0f} | {ratio:.2f} | {same} |")


def settings(base: Any, inputs: Any) -> dict[str, Any]:
    return {
        "input_ids": inputs, "attention_mask": (inputs != base.pad).long(), "num_beams": BEAM, "length_penalty": 1.0,
        "max_new_tokens": int(inputs.shape[1] * 1.6) + 8, "do_sample": False,
        "forced_bos_token_id": base.family.forced_bos(base.target),
    }  # fmt: skip


def library(base: Any, rows: list[list[int]], batches: list[list[int]], **more: Any) -> Callable[[], list[str]]:
    def run() -> list[str]:
        results: list[str] = []
        for batch in batches:
            inputs = base.pad_batch([rows[i] for i in batch])
            results += base.decode(base.model.generate(**settings(base, inputs), **more))
        return results

    return run


def ours(base: Any, rows: list[list[int]], batches: list[list[int]]) -> Callable[[], list[str]]:
    from engine.base.onednn import fast_products
    from engine.decoding.beam_search import beam_search

    search = library(base, rows, batches, custom_generate=beam_search)

    def run() -> list[str]:
        with fast_products(base):
            return search()

    return run


def customized(base: Any, texts: list[str], batches: list[list[int]], plugin: Any) -> Callable[[], list[str]]:
    """Our search with a plugin, in the same batches and with the same settings."""
    from engine.base.decoding_options import Decoding
    from engine.decoding.translate import translate

    decoding = Decoding(beam=BEAM, max_length_ratio=1.6, guard=False, batch_tokens=1 << 20)

    def run() -> list[str]:
        results: list[str] = []
        for batch in batches:
            results += translate(base, [texts[i] for i in batch], plugin, decoding=decoding)
        return results

    return run


def ctranslate(
    args: argparse.Namespace, base: Any, rows: list[list[int]], batches: list[list[int]], folder: Path
) -> dict[str, Callable[[], list[str]]]:
    """The base as CTranslate2 converts it, in float32 and int8; nothing, with a word, where that cannot be done."""
    try:
        import ctranslate2
        from ctranslate2.converters import TransformersConverter
    except ImportError:
        print("CTranslate2 is not installed (pip install ctranslate2): left out.\n")
        return {}
    try:
        base.model.float().save_pretrained(folder / "model")
        base.tokenizer.save_pretrained(folder / "model")
        with_start_token()
        TransformersConverter(str(folder / "model")).convert(str(folder / "converted"), force=True)
        translators = {
            f"CTranslate2, {kind}": ctranslate2.Translator(
                str(folder / "converted"), "cpu", intra_threads=args.threads or 0, compute_type=kind
            )
            for kind in ("float32", "int8")
        }
    except Exception as error:
        print(f"CTranslate2 cannot convert this base ({type(error).__name__}: {error}): left out.\n")
        return {}
    pieces = base.tokenizer.convert_ids_to_tokens

    def run(translator: Any) -> list[str]:
        items: list[str] = []
        for batch in batches:
            sources = [pieces(rows[i]) for i in batch]
            longest = int(max(map(len, sources)) * 1.6) + 8
            done = translator.translate_batch(sources, beam_size=BEAM, max_decoding_length=longest)
            items += base.decode([base.tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in done])
        return items

    return {name: partial(run, translator) for name, translator in translators.items()}


def with_start_token() -> None:
    """Let CTranslate2 begin with the base's own start token.

    Its converter takes Marian models to begin with an embedding of zeros, as those that Marian trained do; ours have learned
    one, and give other translations without it.
    """
    from ctranslate2.converters import transformers as converters

    class Loader(converters.MarianMTLoader):
        def set_config(self, config: Any, model: Any, tokenizer: Any) -> None:
            super().set_config(config, model, tokenizer)
            config.decoder_start_token = tokenizer.convert_ids_to_tokens(model.config.decoder_start_token_id)

        def set_decoder(self, spec: Any, decoder: Any) -> None:
            super().set_decoder(spec, decoder)
            spec.start_from_zero_embedding = False

        def get_vocabulary(self, model: Any, tokenizer: Any) -> Any:
            return converters.BartLoader.get_vocabulary(self, model, tokenizer)

        def _remove_pad_weights(self, spec: Any) -> None:
            """They are those of the start token."""

    converters._MODEL_LOADERS["MarianConfig"] = Loader()


if __name__ == "__main__":
    main()
