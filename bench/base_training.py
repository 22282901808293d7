#!/usr/bin/env python3
"""Training a base: our trainer beside transformers' Seq2SeqTrainer, tokens a second of the same pairs on the same machine.

Both train the same new Marian model on the same sentence pairs, both directions, in turn, several times. Counted are tokens
of both sides without padding. The plain trainer is as one would write it down: float32, batches of random sentences padded
to the longest; its own bfloat16 and grouping by length are a second row.

    python bench/base_training.py                     # size small, 3 rounds
    python bench/base_training.py --size tiny --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PAIRS = ROOT.parent / "shared" / "data" / "parallel" / "de-en" / "news.tsv.gz"


def ours(setup: dict[str, Any], updates: int) -> float:
    """Tokens a second of our trainer."""
    from engine.builders.bases.loop import Trainer
    from engine.builders.bases.network import initial_model
    from engine.core.progress import Progress

    options = setup["options"].replace(updates=updates, minutes=None)
    with tempfile.TemporaryDirectory() as folder:
        model = initial_model(setup["vocabulary"], options, None)
        trainer = Trainer(model, setup["examples"], [], options, setup["device"], "auto", Path(folder))
        trainer.weights.save = lambda *_: None  # type: ignore[method-assign]  # writing is not what is measured
        trainer.update(next(trainer.batches())[2])  # warm
        state = trainer.run(Progress(), lambda _: {})
    return state.tokens / state.seconds


def plain(setup: dict[str, Any], updates: int, fast: bool) -> float:
    """Tokens a second of Seq2SeqTrainer; `fast`: with bfloat16 and batches of sentences of like length."""
    import torch
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback
    from transformers.models.marian.modeling_marian import shift_tokens_right

    from engine.builders.bases.network import initial_model

    vocabulary = setup["vocabulary"]
    rows = setup["rows"]
    per_batch = max(1, round(setup["tokens"] / (sum(len(r["input_ids"]) + len(r["labels"]) for r in rows) / 2 / len(rows))))

    def collate(chosen: list[dict[str, list[int]]]) -> dict[str, Any]:
        def pad(name: str, value: int) -> Any:
            width = max(len(row[name]) for row in chosen)
            return torch.tensor([row[name] + [value] * (width - len(row[name])) for row in chosen])  # (B, S)

        inputs = pad("input_ids", vocabulary.pad)
        labels = pad("labels", -100)
        return {"input_ids": inputs, "attention_mask": (inputs != vocabulary.pad).long(), "labels": labels,
                "decoder_input_ids": shift_tokens_right(labels, vocabulary.pad, vocabulary.pad)}  # fmt: skip

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 1:
                self.begin = time.monotonic()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self.seconds = time.monotonic() - self.begin

    seen = []

    def counted(chosen: list[dict[str, list[int]]]) -> dict[str, Any]:
        seen.append(sum(len(row["input_ids"]) + len(row["labels"]) for row in chosen))
        return collate(chosen)

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"bf16": True, "train_sampling_strategy": "group_by_length"} if fast else {}
        arguments = Seq2SeqTrainingArguments(
            folder, max_steps=updates + 1, per_device_train_batch_size=per_batch, learning_rate=1e-3, save_strategy="no",
            label_smoothing_factor=0.1, report_to=[], disable_tqdm=True, use_cpu=setup["device"].type == "cpu",
            remove_unused_columns=False, logging_strategy="no", **settings,
        )  # fmt: skip
        model = initial_model(vocabulary, setup["options"], None)
        Seq2SeqTrainer(model=model, args=arguments, train_dataset=rows, data_collator=counted, callbacks=[clock]).train()
    return sum(seen[1 : updates + 1]) / clock.seconds


def prepare(size: str, tokens: int, device: str) -> dict[str, Any]:
    """Vocabulary, packed examples, and the same examples as rows for the plain trainer."""
    from engine.builders.bases.options import SIZES, BaseTrainingOptions
    from engine.builders.bases.packing import encode_pairs
    from engine.builders.bases.pairs import PairFile, clean_pairs
    from engine.builders.bases.vocabulary import train_vocabulary
    from engine.core.devices import pick_device

    pairs = list(clean_pairs(PairFile(PAIRS), "de", "en"))
    options = BaseTrainingOptions(size=size, tokens=tokens, warmup=1, decay=0)
    with tempfile.TemporaryDirectory() as folder:
        texts = [text for pair in pairs for text in pair]
        vocabulary = train_vocabulary(lambda: texts, SIZES[size].vocabulary, "de", "en", Path(folder))
        examples = encode_pairs(pairs, [1.0] * len(pairs), vocabulary, options.longest)
        rows = []
        for pair in pairs[:20_000]:
            for way, tag in ((0, vocabulary.tags["en"]), (1, vocabulary.tags["de"])):
                source, target = vocabulary.encode([pair[way], pair[1 - way]])
                if max(len(source), len(target)) <= options.longest:
                    rows.append({"input_ids": [tag, *source, 0], "labels": [*target, 0]})
    return {"vocabulary": vocabulary, "examples": examples, "rows": rows, "options": options, "tokens": tokens,
            "device": pick_device(device)}  # fmt: skip


def main() -> None:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--size", default="small")
    top.add_argument("--tokens", type=int, default=5120, help="tokens of one side in a batch [5120]")
    top.add_argument("--updates", type=int, default=8, help="updates a round [8]")
    top.add_argument("--rounds", type=int, default=3)
    top.add_argument("--device", default="auto")
    args = top.parse_args()
    import torch

    setup = prepare(args.size, args.tokens, args.device)
    systems = {
        "Seq2SeqTrainer, float32": lambda: plain(setup, args.updates, False),
        "Seq2SeqTrainer, bf16, grouped by length": lambda: plain(setup, args.updates, True),
        "tailormt base train": lambda: ours(setup, args.updates),
    }
    result: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(args.rounds):
        for name, run in systems.items():
            result[name].append(run())
            print(f"round {number + 1}: {name}: {result[name][-1]:,.0f} tokens/s", file=sys.stderr, flush=True)
    first = statistics.median(next(iter(result.values())))
    print(f"\nsize {args.size}, {args.tokens:,} tokens a side, {torch.get_num_threads()} threads, torch {torch.__version__}\n")
    print("| trainer | tokens/s, median [lowest, highest] | ratio |\n|---|---:|---:|")
    for name, speeds in result.items():
        middle = statistics.median(speeds)
        print(f"| {name} | {middle:,.0f} [{min(speeds):,.0f}, {max(speeds):,.0f}] | {middle / first:.1f} |")


if __name__ == "__main__":
    main()
