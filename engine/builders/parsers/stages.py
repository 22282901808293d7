"""The stages of a parser, each trained by stanza's trainer into one .pt file.

Sizes are chosen for sets of a few megabytes that run on a CPU: no character language model, narrow layers and small vectors.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.builders.parsers.options import ParserTraining
from engine.builders.parsers.scores import bracket_scores
from engine.builders.parsers.watch import ProgressHandler
from engine.core import languages
from engine.errors import ModelError

SHOWN_EVERY = "10"  # updates between two progress reports


@dataclass(frozen=True)
class Room:
    """The data and model folders of one training, with its language and options."""

    data: Path
    done: Path
    language: str  # stanza's code
    options: ParserTraining

    def model(self, processor: str) -> Path:
        return self.done / f"{processor}.pt"

    def common(self, target: Path) -> list[str]:
        """The arguments common to all of stanza's trainers."""
        return [
            *("--mode", "train", "--lang", self.language, "--shorthand", f"{self.language}_{self.options.package}"),
            *("--save_dir", str(target.parent), "--save_name", target.name, "--seed", str(self.options.seed), "--cpu"),
        ]


def train_tokenizer(room: Room, target: Path, watch: ProgressHandler) -> None:
    """Train the tokenizer and sentence splitter, an LSTM (Qi et al. 2020, https://aclanthology.org/2020.acl-demos.14)."""
    from stanza.models import tokenizer

    data = room.data
    steps = room.options.tokenize_steps
    args = ["--txt_file", str(data / "train.txt"), "--label_file", str(data / "train.labels")]
    args += ["--dev_txt_file", str(data / "dev.txt"), "--dev_label_file", str(data / "dev.labels")]
    args += ["--dev_conll_gold", str(data / "dev.conllu"), "--mwt_json_file", str(data / "train.mwt.json")]
    args += ["--steps", str(steps), "--eval_steps", str(min(250, steps)), "--report_steps", SHOWN_EVERY]
    unspaced = languages.unspaced(room.language)
    args += ["--max_seqlen", "100", "--skip_newline"] if unspaced else ["--max_seqlen", "200"]
    if unspaced:
        args += ["--use_dictionary", "--external_dict", str(data / "words.txt")]
    tokenizer.main([*room.common(target), *args])


def train_mwt(room: Room, target: Path, watch: ProgressHandler) -> None:
    """Train the expander of contractions: a dictionary, and a character model for unknown contractions."""
    from stanza.models import mwt_expander

    data = room.data
    args = ["--train_file", str(data / "train.conllu"), "--eval_file", str(data / "dev.conllu")]
    args += ["--gold_file", str(data / "dev.conllu"), "--num_epoch", str(room.options.mwt_epochs)]
    mwt_expander.main([*room.common(target), *args, "--log_step", SHOWN_EVERY, "--hidden_dim", "64", "--emb_dim", "32"])


def train_tagger(room: Room, target: Path, watch: ProgressHandler) -> None:
    from stanza.models import tagger

    steps = room.options.pos_steps
    args = ["--max_steps", str(steps), "--eval_interval", str(min(150, steps)), "--fix_eval_interval", "--batch_size", "60"]
    args += ["--deep_biaff_hidden_dim", "100", "--composite_deep_biaff_hidden_dim", "50", "--num_layers", "2"]
    tagger.main([*room.common(target), *_words(room), *args])


def train_depparse(room: Room, target: Path, watch: ProgressHandler) -> None:
    """Train the dependency parser: deep biaffine attention (Dozat & Manning 2017, https://arxiv.org/abs/1611.01734)."""
    from stanza.models import parser

    steps = room.options.depparse_steps
    args = ["--max_steps", str(steps), "--eval_interval", str(max(1, min(100, steps // 3))), "--no_checkpoint"]
    args += ["--deep_biaff_hidden_dim", "50", "--deep_biaff_output_dim", "50", "--num_layers", "2"]
    # Adam, then Adam at a fifth of the rate from the best model: the few updates are not enough for AdaDelta.
    args += ["--batch_size", "2000", "--optim", "adam", "--lr", "0.003", "--beta2", "0.95", "--weight_decay", "0"]
    args += ["--second_optim", "adam", "--second_lr", "0.0006", "--second_warmup_steps", "10"]
    args += ["--second_optim_start_step", str(max(1, steps * 7 // 10)), "--max_steps_before_stop", str(steps)]
    parser.main([*room.common(target), *_words(room), *args])


def train_constituency(room: Room, target: Path, watch: ProgressHandler) -> None:
    """Train the in-order shift-reduce parser (Liu & Zhang 2017, https://aclanthology.org/Q17-1029).

    stanza's scorer needs Java; `_Brackets` replaces it with the same measure, labelled brackets, to choose the best epoch.
    """
    from stanza.models import constituency_parser
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.constituency import parser_training, tree_reader

    args = ["--wordvec_pretrain_file", str(room.model("pretrain")), "--no_checkpoint"]
    args += ["--hidden_size", "128", "--delta_embedding_dim", "16", "--tag_embedding_dim", "24"]
    args += ["--num_lstm_layers", "2", "--transition_embedding_dim", "20", "--transition_hidden_size", "20"]
    args += ["--pattn_num_layers", "0", "--lattn_d_proj", "0", "--epoch_size", "0", "--eval_batch_size", "100"]
    args += ["--epochs", str(room.options.constituency_epochs)]
    options = constituency_parser.parse_args([*room.common(target), *args])
    options.update(wandb=None, save_name=str(target), eval_file=str(room.data / "dev.ptb"))
    random.seed(room.options.seed)
    torch.manual_seed(room.options.seed)
    train = tree_reader.read_treebank(str(room.data / "train.ptb"))
    dev = tree_reader.read_treebank(str(room.data / "dev.ptb"))
    cache = FoundationCache()
    trainer, sequences, _, transitions = parser_training.build_trainer(options, train, dev, [], cache, None)
    batches = -(-len(train) // options["train_batch_size"])
    total = batches * options["epochs"]

    def counted(items: Sequence[Any], **_: Any) -> Any:
        """Replacement for stanza's progress bar, which wraps the batches of each epoch and the sentences of each evaluation."""
        for item in items:
            yield item
            if not hasattr(items, "__next__"):  # evaluations pass iterators
                counted.done += 1  # type: ignore[attr-defined]
            watch.step(min(total, counted.done), total)  # type: ignore[attr-defined]

    counted.done = 0  # type: ignore[attr-defined]
    bar, parser_training.tqdm = parser_training.tqdm, counted
    try:
        parser_training.iterate_training(options, trainer, train, sequences, transitions, dev, [], [], cache, _Brackets(watch))
    finally:
        parser_training.tqdm = bar


class _Brackets:
    """Replaces stanza's Java evaluator."""

    def __init__(self, watch: ProgressHandler) -> None:
        self.watch = watch

    def process(self, results: Sequence[Any]) -> Any:
        value = bracket_scores([(result.gold, result.predictions[0].tree) for result in results])["f1"]
        self.watch.note = f"score on held-out sentences {100 * value:.1f}"
        return _Answer(value)


@dataclass(frozen=True)
class _Answer:
    f1: float
    treeF1: float = 0.0  # noqa: N815 - stanza's name

    def HasField(self, name: str) -> bool:  # noqa: N802 - the name in protocol buffers
        return False


def _words(room: Room) -> list[str]:
    """The arguments common to the tagger and the dependency parser."""
    args = ["--train_file", str(room.data / "train.words.conllu"), "--eval_file", str(room.data / "dev.words.conllu")]
    args += ["--hidden_dim", str(room.options.hidden), "--log_step", SHOWN_EVERY, "--word_emb_dim", "50"]
    args += ["--char_emb_dim", "32", "--char_hidden_dim", "64", "--transformed_dim", "64", "--tag_emb_dim", "32"]
    args += ["--dropout", "0.3", "--word_dropout", "0.2"]  # less than stanza's 0.5 and 0.33, since runs are short
    return [*args, "--wordvec_pretrain_file", str(room.model("pretrain"))]


STAGES: dict[str, tuple[str, Callable[[Room, Path, ProgressHandler], None]]] = {
    "tokenize": ("Training the tokenizer", train_tokenizer),
    "mwt": ("Training on contractions", train_mwt),
    "pos": ("Training the tagger", train_tagger),
    "depparse": ("Training the dependency parser", train_depparse),
    "constituency": ("Training the constituency parser", train_constituency),
}


def run_stage(name: str, room: Room, watch: ProgressHandler, target: Path) -> None:
    """Train one part into `target`. Raises ModelError if the trainer writes no model."""
    try:
        STAGES[name][1](room, target, watch)
    except SystemExit as end:  # some of stanza's trainers exit if they have no data
        raise ModelError(f"The {name} part could not be trained: the treebanks hold too little for it.") from end
    if not target.is_file():
        raise ModelError(f"The {name} part could not be trained: the treebanks hold too little for it.")
