"""What learning costs: an update, the memory it reads, and how much memory of the machine it takes at most."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from measures.row import Row
from measures.setup import ROOT, Setup
from measures.timing import interleaved

__all__ = ["memory_building", "peak_memory", "training_step"]

TOKENS = 1024  # a batch of the budgets `quick` and `balanced`


def training_pairs(setup: Setup) -> Any:
    """Sentences of both languages side by side; that they are no translations of each other costs nothing."""
    from engine.methods.batches import Pairs

    return Pairs.encode(setup.base, list(zip(setup.english, setup.chinese, strict=False)), max_tokens=64)


def update(setup: Setup, name: str, memory: Any, tokens: int, **settings: Any) -> tuple[Callable[[], Any], Any]:
    """One update of the training loop on a fixed batch, and the module."""
    import torch

    from engine.methods.batches import epoch_batches
    from engine.training.batches import make_batch
    from engine.training.loop import make_optimizer
    from engine.training.options import TrainingOptions

    method, module = setup.module(name, memory, ready=False, **settings)
    module.train()
    pairs = training_pairs(setup)
    optimizer = make_optimizer(method, module, TrainingOptions())
    batch_rows = max(epoch_batches(pairs.lengths, tokens, seed=1, epoch=0), key=lambda rows: sum(pairs.lengths[i] for i in rows))

    def run() -> float:
        optimizer.zero_grad(set_to_none=True)
        with setup.base.lock, method.attach(setup.base, module):
            batch = make_batch(setup.base, method, module, pairs, batch_rows, 10_000)
            loss = method.loss(setup.base, module, batch)
        loss.total.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        return float(loss.total.detach())

    return run, module


def training_step(setup: Setup) -> list[Row]:
    """Row 3: an update with two passes, the memory of the lowest layer left out in the second; updates with two passes where the
    layers are drawn, so that the second begins higher; and updates as they come with the default settings, where no memory is
    left out of most, and the second pass would be the first.
    """
    tokens, rows = 128 if setup.small else TOKENS, []
    steps = 2 if setup.small else 6
    for size, limit in ((setup.size(1_000, 100), 2.2), (setup.size(20_000, 200), None)):
        memory = setup.memory(size)
        residual, _ = update(setup, "residual_adapter", None, tokens)
        ours, _ = update(setup, "memory_adapter", memory, tokens)
        always, forced = update(setup, "memory_adapter", memory, tokens)
        forced.drop = one_layer(forced)
        systems = {"residual": residual, "two passes": always}
        if limit is not None:
            systems["as by default"] = as_they_come(ours, steps)
            drawn, module = update(setup, "memory_adapter", memory, tokens)
            module.drop = until_something(module.drop)
            systems["drawn"] = as_they_come(drawn, steps)
        clock = interleaved(systems, setup.rounds)
        encoder, selected = frozen_work(setup, always)
        note = f"the frozen encoder runs {encoder} time{'s' * (encoder != 1)} a step; frozen weights with a gradient: {selected}"
        figures = {**clock.to_mapping(), "encoder_runs": encoder, "frozen_gradients": selected}
        where = f"against residual adapter's, {size:,} phrases a layer, {tokens} tokens"
        rows.append(
            Row(
                "training_step", f"training step, two passes, {where}", clock.ratio("two passes", "residual"), limit,
                wall=clock.ratio("two passes", "residual", "wall"), note=note, figures=figures,
            )
        )  # fmt: skip
        for name, title in (("drawn", "two passes, layers drawn"), ("as by default", "default memory dropout")):
            if name in systems:
                rows.append(
                    Row(
                        "training_step", f"training step, {title}, {where}", clock.ratio(name, "residual") / steps, limit,
                        wall=clock.ratio(name, "residual", "wall") / steps, note=f"mean of {steps} steps a round",
                        figures=figures,
                    )
                )  # fmt: skip
    return rows


def one_layer(module: Any) -> Callable[[], bool]:
    """In the place of `drop`: the memory of the lowest layer, so that nothing of the second pass is the first's."""

    def drop() -> bool:
        for layer, _, reader in module.readers():
            reader.dropped = layer == 0
        return True

    return drop


def until_something(drop: Callable[[], bool]) -> Callable[[], bool]:
    """In the place of `drop`: it again, until something is left out."""

    def again() -> bool:
        while not drop():
            pass
        return True

    return again


def as_they_come(run: Callable[[], Any], steps: int) -> Callable[[], None]:
    """Several updates, each with what is drawn for it."""

    def several() -> None:
        for _ in range(steps):
            run()

    return several


def frozen_work(setup: Setup, run: Callable[[], Any]) -> tuple[int, int]:
    """How often the encoder runs in one step, and how many of the base's weights hold a gradient after it."""
    calls = []
    handle = setup.base.model.get_encoder().register_forward_hook(lambda *_: calls.append(1))
    try:
        run()
    finally:
        handle.remove()
    return len(calls), sum(p.grad is not None or p.requires_grad for p in setup.base.model.parameters())


def memory_building(setup: Setup) -> list[Row]:
    """Row 4: recording against the same batches through the base, and nothing else."""
    import torch

    from engine.decoding.translate import length_batches
    from engine.memory import record

    base, count = setup.base, setup.size(2_000, 300)
    pairs = setup.phrase_pairs(count)

    def plain() -> None:
        sources, targets = (base.encode([pair.source for pair in pairs]), base.encode_target([pair.target for pair in pairs]))
        lengths = [len(a) + len(b) for a, b in zip(sources, targets, strict=True)]
        with torch.no_grad():
            for rows in length_batches(lengths, base.batch_tokens):
                inputs = base.pad_batch([sources[i] for i in rows])  # (B, S)
                labels = base.pad_batch([targets[i] for i in rows])  # (B, T)
                base.model(
                    input_ids=inputs, attention_mask=(inputs != base.pad).long(), decoder_input_ids=base.shift_right(labels),
                    use_cache=False,
                )  # fmt: skip

    systems: dict[str, Callable[[], Any]] = {
        "forward": plain,
        "recording": lambda: record(base, pairs, setup.scratch / "building.safetensors"),
    }
    clock = interleaved(systems, setup.rounds)
    return [
        Row(
            "memory_building", f"memory of {count:,} phrases, against the base's plain forward over the same tokens",
            clock.ratio("recording", "forward"), 1.2, wall=clock.ratio("recording", "forward", "wall"),
            note=f"{clock.to_mapping()['recording']['cpu']:.1f} s of processor time", figures=clock.to_mapping(),
        )
    ]  # fmt: skip


INSIDE = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/bench"]
from measures.learning import update
from measures.setup import Setup
size, tokens = int(sys.argv[2]), int(sys.argv[3])
setup = Setup(base_path=sys.argv[4], small=bool(int(sys.argv[5])))
setup.english, setup.chinese
memory = setup.memory(size) if size else None
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()  # the system's own figure begins with the parent's peak
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
run, module = update(setup, "memory_adapter" if size else "residual_adapter", memory, tokens,
                     **({"memory_dropout": 0.5} if size else {}))
if size:
    from measures.learning import one_layer
    module.drop = one_layer(module)
before = peak()
for _ in range(2):
    run()
rows = sum(reader.memory.numel() * 4 for _, _, reader in module.readers()) / 2**20 if size else 0
print(json.dumps({"before": before, "peak": peak(), "memory": rows}))
"""


def peak_memory(setup: Setup) -> list[Row]:
    """Row 6: processes of their own, so that a peak is one's own; "base" is a process that loads it and does one forward."""
    size, tokens = setup.size(40_000, 200), 128 if setup.small else TOKENS
    result = {}
    for name, phrases in (("base", 0), ("memory", size)):
        command = [sys.executable, "-c", INSIDE, str(ROOT), str(phrases), str(tokens), setup.base_path, str(int(setup.small))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result[name] = json.loads(done.stdout.splitlines()[-1])
    memory = result["memory"]["memory"]
    room = result["base"]["before"] + 2 * memory + 2048
    return [
        Row(
            "peak_memory", f"peak memory in training, {size:,} phrases a layer, batches of {tokens} tokens",
            result["memory"]["peak"], room, unit="MiB",
            note=f"base loaded {result['base']['before']:.0f} MiB, memory {memory:.0f} MiB; residual adapter's training "
            f"{result['base']['peak']:.0f} MiB", figures=result,
        )
    ]  # fmt: skip
