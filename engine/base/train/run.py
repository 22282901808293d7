"""From files of sentence pairs to a base on disk: the steps of training, in order."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.base.train.options import SIZES, BaseTrainingOptions
from engine.base.train.pairs import PairFile, read_held_out, read_pairs
from engine.base.train.vocabulary import Vocabulary, copy_vocabulary, load_vocabulary, train_vocabulary
from engine.errors import CorpusError, OptionError
from engine.files import check_writable, write_json
from engine.progress import Progress

__all__ = ["train_base"]

FEWEST = 500  # pairs: with fewer nothing that deserves the name of a base comes out
VALIDATION = 300  # held-out pairs whose likelihood is watched


def train_base(
    pairs: Sequence[tuple[Path, float]],
    held_out: Sequence[Path],
    source: str,
    target: str,
    output: Path,
    options: BaseTrainingOptions,
    *,
    start: Path | None = None,
    about: str = "",
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a base that translates both ways between `source` and `target`, into the folder `output`.

    `pairs` are (TSV file, weight): source, tab, target. Every sentence of the `held_out` files stays out of training; they
    are translated at checkpoints and, whole, at the end. `start` is an earlier base of ours to go on from. Run again with
    the same files it goes on from its checkpoint (`output`/training), so that a long training can be done in pieces. With
    neither `minutes` nor `updates` it is an hour. `about` is Markdown on where the data is from, for the card.

    Returns the card's figures. Raises CorpusError on files that cannot be read or are too few, OptionError on settings
    that contradict each other, ModelError on a `start` that does not fit.
    """
    import torch

    from engine.base.train.card import write_card
    from engine.base.train.heldout import score_base
    from engine.base.train.loop import Trainer
    from engine.base.train.network import initial_model
    from engine.base.train.packing import encode_pairs, packed_batches
    from engine.devices import pick_device

    progress = progress or Progress()
    if source == target:
        raise OptionError(f"Source and target are both {source}. Give two different languages.")
    if options.minutes is None and options.updates is None:
        options = options.replace(minutes=60.0)
    if options.longest + 2 > options.row_tokens:
        raise OptionError(
            f"longest: a row of {options.row_tokens} tokens holds no sentence of {options.longest} pieces."
        )
    work = output / "training"
    check_writable(output / "config.json", "the base")

    progress.begin("Reading pairs", 0, 4)
    scored = read_held_out(held_out)
    keep_out = {text for rows in scored.values() for pair in rows for text in pair}
    files = read_pairs(pairs, source, target, held_out=keep_out, progress=progress)
    total = sum(len(file.pairs) for file in files)
    if total < FEWEST:
        raise CorpusError(
            f"{total:,} usable pairs are too few to train a base on; give at least {FEWEST:,} (some 100,000 for a useful one)."
        )

    progress.begin("Vocabulary", 1, 4)
    vocabulary = _vocabulary(files, source, target, output, options, start)
    all_pairs = [pair for file in files for pair in file.pairs]
    weights = [file.weight for file in files for _ in file.pairs]
    examples = encode_pairs(all_pairs, weights, vocabulary, options.longest)
    valid_pairs = [pair for rows in scored.values() for pair in rows[: VALIDATION // max(1, len(scored))]]
    valid = encode_pairs(valid_pairs, [1.0] * len(valid_pairs), vocabulary, options.longest)
    validation = list(packed_batches(valid, rows=16, row_tokens=options.row_tokens, seed=0, epoch=0, keep_last=True))

    progress.begin("Training", 2, 4)
    torch.manual_seed(options.seed)
    where = pick_device(device)
    model = initial_model(vocabulary, options, start, eager=where.type == "cpu")
    trainer = Trainer(model, examples, validation, options, where, precision, work)
    trainer.restore()
    table = [_row(file) for file in files]
    provenance = {
        "options": options.to_mapping(), "source": source, "target": target, "files": table, "start": str(start or ""),
        "too_long": examples.too_long, "device": where.type,
    }  # fmt: skip
    write_json(work / "provenance.json", provenance, "the training's record")

    def at_checkpoint(state: Any) -> dict[str, Any]:
        figures: dict[str, Any] = {"valid_loss": round(trainer.validate(), 4)}
        if trainer.weights.average:
            figures["average_loss"] = round(trainer.validate(trainer.weights.average), 4)
        _export(trainer, output)
        if scored and options.watched:
            name, rows = next(iter(scored.items()))
            figures |= score_base(output, {name: rows[: options.watched]}, source, target, beam=1, device=where).brief()
        progress.metrics({"step": state.update, **figures})
        return figures

    state = trainer.run(progress, at_checkpoint)
    _export(trainer, output)

    progress.begin("Scoring", 3, 4)
    scores = score_base(output, scored, source, target, beam=4, device=where, progress=progress)
    figures = {
        **provenance, **dataclasses.asdict(state), "pairs": len(examples) // 2,
        "valid_loss": trainer.validate(trainer.weights.best()), "scores": scores.rows,
    }  # fmt: skip
    write_card(output, figures, about)
    return figures


def _vocabulary(
    files: Sequence[PairFile], source: str, target: str, output: Path, options: BaseTrainingOptions, start: Path | None
) -> Vocabulary:
    """The vocabulary that an earlier run left, that of the base to go on from, or a new one."""
    if (output / "vocab.json").exists() and (output / "source.spm").exists():
        return load_vocabulary(output, source, target)
    if start is not None:
        load_vocabulary(start, source, target)  # refused before anything is written
        copy_vocabulary(start, output)
        return load_vocabulary(output, source, target)
    size = options.vocabulary or SIZES[options.size].vocabulary
    return train_vocabulary(
        lambda: (text for file in files for pair in file.pairs for text in pair), size, source, target, output,
        grow=not options.vocabulary,
    )  # fmt: skip


def _row(file: PairFile) -> dict[str, Any]:
    return {
        "file": file.path.name, "weight": file.weight, "lines": file.lines, "kept": len(file.pairs),
        "skipped": dict(file.skipped), "first": dict(file.first),
    }  # fmt: skip


def _export(trainer: Any, output: Path) -> None:
    """Write the weights in half precision, as transformers saves a Marian model."""
    import torch
    from safetensors.torch import save_file

    from engine.errors import storage_errors
    from engine.files import replacing

    model = trainer.network.model
    tensors = {
        name: weight.detach().to("cpu", torch.float16).contiguous()
        for name, weight in zip(trainer.weights.names, trainer.weights.best(), strict=True)
    }
    tensors["final_logits_bias"] = model.final_logits_bias.detach().to("cpu", torch.float16)
    config = model.config.to_diff_dict()
    config |= {"dtype": "float16", "dropout": 0.1, "architectures": ["MarianMTModel"]}
    config.pop("_attn_implementation", None)
    with storage_errors("the base", output):
        with replacing(output / "model.safetensors", "the base") as temporary:
            save_file(tensors, temporary, metadata={"format": "pt"})
        with replacing(output / "config.json", "the base") as temporary:
            temporary.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        model.generation_config.save_pretrained(output)
