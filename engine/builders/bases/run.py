"""Training a base from files of sentence pairs: the steps in order."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engine.builders.bases.card import write_card
from engine.builders.bases.decoding_choice import choose_defaults
from engine.builders.bases.filtering import drop_worst, read_scores
from engine.builders.bases.heldout import score_base
from engine.builders.bases.loop import Trainer
from engine.builders.bases.network import initial_model
from engine.builders.bases.options import BaseTrainingOptions
from engine.builders.bases.packing import encode_pairs, packed_batches
from engine.builders.bases.pairs import PairFile, read_held_out, sample_texts
from engine.builders.bases.tokenised import tokenised_pairs
from engine.builders.bases.vocabulary import Vocabulary, copy_vocabulary, load_vocabulary, train_vocabulary
from engine.core.atomic_files import atomic_write, check_writable, write_json
from engine.core.devices import pick_device
from engine.core.progress import Progress
from engine.errors import CorpusError, OptionError, storage_errors
from engine.training.metrics_log import read_metrics

FEWEST = 500  # pairs; fewer cannot train a usable base
VOCABULARY_SAMPLE = 700_000  # sentences; more take longer and hardly change the vocabulary
VALIDATION = 300  # held-out pairs for the validation loss


@dataclass(frozen=True)
class BaseRun:
    """The inputs and output folder of a training: weighted files of source, tab, target. Sentences of the `held_out` files are
    excluded from training; some are translated at checkpoints, and all at the end. `start` is an earlier base to continue
    from, `about` Markdown on the origin of the data for the card.
    """

    pairs: Sequence[PairFile]
    held_out: Sequence[Path]
    source: str
    target: str
    output: Path
    options: BaseTrainingOptions
    start: Path | None = None
    about: str = ""
    device: str = "auto"
    precision: str = "auto"

    def checked(self) -> BaseRun:
        """The run, limited to one hour if neither minutes nor updates is set. Raises OptionError on contradictory settings."""
        options = self.options
        if self.source == self.target:
            raise OptionError(f"Source and target are both {self.source}. Give two different languages.")
        if options.longest + 2 > options.row_tokens:
            raise OptionError(f"longest: a row of {options.row_tokens} tokens holds no sentence of {options.longest} pieces.")
        if options.minutes is None and options.updates is None:
            return replace(self, options=options.replace(minutes=60.0))
        return self


@dataclass
class _Data:
    """The training examples, the held-out pairs by file, and those for validation, as text and as batches."""

    examples: Any
    scored: dict[str, list[tuple[str, str]]]
    valid: list[tuple[str, str]]
    validation: list[Any]
    dropped: Sequence[int]  # number of the worst pairs dropped from each file


def train_base(run: BaseRun, progress: Progress | None = None) -> dict[str, Any]:
    """Train a base that translates in both directions between two languages, into the folder `output`.

    A repeated run with the same files continues from its checkpoint (`output`/training), so that a long training can be
    split up. Returns the card's figures. Raises CorpusError on files that cannot be read or hold too few pairs, OptionError on
    contradictory settings, ModelError on a `start` that does not fit.
    """
    progress, run = progress or Progress(), run.checked()
    output, options, work = run.output, run.options, run.output / "training"
    check_writable(output / "config.json", "the base")
    data, vocabulary = _read(run, progress)

    progress.begin("Training", 2, 4)
    torch.manual_seed(options.seed)
    where = pick_device(run.device)
    model = initial_model(vocabulary, options, run.start)
    trainer = Trainer(model, data.examples, data.validation, options, where, run.precision, work)
    trainer.restore()
    provenance = {
        "options": options.to_mapping(), "source": run.source, "target": run.target,
        "files": _table(run.pairs, data.dropped), "start": str(run.start or ""), "too_long": data.examples.too_long,
        "device": where.type,
    }  # fmt: skip
    write_json(work / "provenance.json", provenance, "the training's record")

    def at_checkpoint(state: Any) -> dict[str, Any]:
        metrics: dict[str, Any] = {"tokens": state.tokens, "valid_loss": round(trainer.validate(), 4)}
        if trainer.weights.average:
            metrics["average_loss"] = round(trainer.validate(trainer.weights.average), 4)
        _export(trainer, output)
        if data.scored and options.watched:
            watched = {name: rows[: options.watched] for name, rows in data.scored.items()}
            metrics |= score_base(output, watched, run.source, run.target, beam=1, device=where).brief()
        progress.metrics({"step": state.update, **metrics})
        return metrics

    state = trainer.run(progress, at_checkpoint)
    _export(trainer, output)

    progress.begin("Scoring", 3, 4)
    chosen = choose_defaults(output, data.valid, run.source, run.target, device=str(where), progress=progress)
    scores = score_base(output, data.scored, run.source, run.target, beam=4, device=where, progress=progress)
    figures = {
        **provenance, **asdict(state), "pairs": len(data.examples) // 2,
        "valid_loss": trainer.validate(trainer.weights.best()), "scores": scores.rows,
        "decoding": {direction: asdict(choice) for direction, choice in chosen.items()},
        "curve": [row for row in read_metrics(work / "metrics.jsonl") if "average_loss" in row],
    }  # fmt: skip
    write_card(output, figures, run.about)
    return figures


def _read(run: BaseRun, progress: Progress) -> tuple[_Data, Vocabulary]:
    options, work = run.options, run.output / "training"
    progress.begin("Vocabulary", 0, 4)
    scored = read_held_out(run.held_out)
    keep_out = {text for rows in scored.values() for pair in rows for text in pair}
    vocabulary = _vocabulary(run, keep_out, progress)

    progress.begin("Reading pairs", 1, 4)
    examples = tokenised_pairs(run.pairs, vocabulary, work, longest=options.longest, held_out=keep_out, progress=progress)
    ranked = read_scores(work / "pairs", len(examples) // 2)
    dropped = [] if ranked is None else drop_worst(examples, ranked, options.drop_worst, len(run.pairs))
    _check_enough(len(examples) // 2)
    valid = [pair for rows in scored.values() for pair in rows[: VALIDATION // max(1, len(scored))]]
    encoded = encode_pairs(valid, [1.0] * len(valid), vocabulary, options.longest)
    batches = packed_batches(encoded, rows=16, row_tokens=options.row_tokens, seed=0, epoch=0, keep_last=True)
    return _Data(examples, scored, valid, list(batches), dropped), vocabulary


def _vocabulary(run: BaseRun, held_out: Collection[str], progress: Progress) -> Vocabulary:
    """The vocabulary of an earlier run or of the base to continue from, or a new one trained on a sample of the text."""
    source, target, output, options = run.source, run.target, run.output, run.options
    if (output / "vocab.json").exists() and (output / "source.spm").exists():
        return load_vocabulary(output, source, target)
    if run.start is not None:
        load_vocabulary(run.start, source, target)  # raises before anything is written
        copy_vocabulary(run.start, output)
        return load_vocabulary(output, source, target)
    texts = sample_texts(run.pairs, VOCABULARY_SAMPLE, options.seed, held_out, progress)
    _check_enough(len(texts) // 2)  # if there are few pairs, all are in the sample
    size = options.shape().vocabulary
    return train_vocabulary(lambda: texts, size, source, target, output, grow=not options.vocabulary)


def _check_enough(pairs: int) -> None:
    if pairs < FEWEST:
        raise CorpusError(
            f"{pairs:,} usable pairs are too few to train a base on; give at least {FEWEST:,} (some 100,000 for a useful one)."
        )


def _table(files: Sequence[PairFile], dropped: Sequence[int]) -> list[dict[str, Any]]:
    """A row per file for the card."""
    rows: list[dict[str, Any]] = [
        {"file": file.path.name, "weight": file.weight, "lines": file.lines, "kept": file.kept,
         "skipped": dict(file.skipped), "first": dict(file.first)}
        for file in files
    ]  # fmt: skip
    for row, count in zip(rows, dropped, strict=False):
        row["skipped"]["far from a translation"] = count
    return rows


def _export(trainer: Any, output: Path) -> None:
    """Write the weights in half precision, in the files that transformers loads as a Marian model."""
    from safetensors.torch import save_file

    model = trainer.network.model
    tensors = {
        name: weight.detach().to("cpu", torch.float16).contiguous()
        for name, weight in zip(trainer.weights.names, trainer.weights.best(), strict=True)
    }
    tensors["final_logits_bias"] = model.final_logits_bias.detach().to("cpu", torch.float16)
    config = model.config.to_diff_dict()
    config |= {"dtype": "float16", "architectures": ["MarianMTModel"]}
    config.pop("_attn_implementation", None)
    with storage_errors("the base", output):
        with atomic_write(output / "model.safetensors", "the base") as temporary:
            save_file(tensors, temporary, metadata={"format": "pt"})
        with atomic_write(output / "config.json", "the base") as temporary:
            temporary.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        model.generation_config.save_pretrained(output)
