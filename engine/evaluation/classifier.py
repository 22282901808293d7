"""Classifier of whether a text is in the style: a TextCNN (Kim, 2014), as in paper 1, over the frozen base's word embeddings.

It learns to distinguish the samples from two kinds of text that are not in the style: the general sample of the language, and the
samples' sentences in the base's words (translated back and forth, which removes the style and keeps the content: Prabhumoye et al.,
2018). Without the second kind it would learn the topics of the samples, and accept any translation of such sentences. A text counts
as in the style if its probability is above one half.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from engine.base import BaseModel
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.tensor_files import save_tensors
from engine.errors import CorpusError, InputError

FILE = "style_classifier.safetensors"
KIND = "tailor-mt style classifier 1"
WIDTHS, FILTERS = (1, 2, 3, 4), 100
EPOCHS, BATCH, RATE, DROPOUT = 10, 50, 1e-3, 0.5
FOLDS = 5
MOST = 500  # sentences of the style per epoch, and as many others
LONGEST = 128  # tokens
FEWEST = 20


@dataclass(frozen=True)
class Accuracy:
    """Accuracy on texts held out from training, in percent; None if there are none.

    `all` weights texts in the style and others equally, regardless of their numbers.
    """

    all: float
    style: float
    general: float | None
    reworded: float | None
    texts: int

    def to_mapping(self) -> dict[str, float | int | None]:
        return dataclasses.asdict(self)


@dataclass(eq=False)
class StyleClassifier:
    """A trained network and the base that provides its tokens and embeddings."""

    base: BaseModel
    network: nn.Module
    accuracy: Accuracy

    @classmethod
    def learn(
        cls,
        base: BaseModel,
        style: Sequence[str],
        general: Sequence[str],
        reworded: Sequence[tuple[int, str]] = (),
        *,
        seed: int = 1,
        progress: Progress | None = None,
    ) -> StyleClassifier:
        """Train on all texts; the accuracy is measured by five-fold cross-validation.

        `reworded` are (index in `style`, the sentence in the base's words); a sentence and its rewording are in the same fold.
        Raises CorpusError with fewer than 20 texts in the style or not in it.
        """
        progress = progress or Progress()
        if len(style) < FEWEST or len(general) + len(reworded) < FEWEST:
            raise CorpusError(
                "The style classifier needs {fewest} sentences of the style and {fewest} that are not in it; there "
                "are {style} and {others}.",
                fewest=FEWEST, style=len(style), others=len(general) + len(reworded),
            )  # fmt: skip
        rows = {
            "style": list(enumerate(tokens(base, style))),
            "general": list(enumerate(tokens(base, general))),
            "reworded": [
                (position, ids) for (position, _), ids in zip(reworded, tokens(base, [text for _, text in reworded]), strict=True)
            ],
        }
        right: dict[str, list[bool]] = {name: [] for name in rows}
        with torch.random.fork_rng(devices=[]):
            for fold in range(FOLDS):
                selected = {name: [row for row in part if row[0] % FOLDS != fold] for name, part in rows.items()}
                tested = {name: [row[1] for row in part if row[0] % FOLDS == fold] for name, part in rows.items()}
                network = fit(base, selected, seed + fold, progress, fold)
                for name, part in tested.items():
                    right[name] += [(value > 0.5) == (name == "style") for value in values(base, network, part)]
            network = fit(base, rows, seed, progress, FOLDS)
        progress.advance(FOLDS + 1, FOLDS + 1)
        return cls(base, network, accuracy(right))

    @property
    def signature(self) -> str:
        """What a figure is based on, in sacrebleu's format."""
        parts = {"style": self.accuracy.style, "general": self.accuracy.general, "reworded": self.accuracy.reworded}
        kinds = "|".join(f"{name}:{share:.1f}" for name, share in parts.items() if share is not None)
        return (
            f"model:textcnn|accuracy:{self.accuracy.all:.1f}|{kinds}|texts:{self.accuracy.texts}|base:{short(self.base)}"
            f"|threshold:0.5"
        )

    def score(self, texts: Sequence[str]) -> list[float]:
        """The probability, 0 to 1, that each text is in the style; 0 for an empty one."""
        result = values(self.base, self.network, tokens(self.base, texts))
        return [value if text.strip() else 0.0 for value, text in zip(result, texts, strict=True)]

    def save(self, folder: Path) -> Path:
        """Write the network into `folder`; tensors and JSON only. Raises StorageError."""
        metadata = {"kind": KIND, "base": self.base.fingerprint(), "accuracy": self.accuracy.to_mapping()}
        weights = self.network.state_dict()
        return save_tensors(folder / FILE, weights, "the style classifier", about=json.dumps(metadata))

    @classmethod
    def load(cls, folder: Path, base: BaseModel) -> StyleClassifier:
        """Load what save() wrote. Raises InputError if it is missing, damaged, or made for another base."""
        path = folder / FILE
        try:
            with safe_open(path, "pt") as file:
                metadata: Json = json.loads(file.metadata()["about"])
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            if metadata["kind"] != KIND or metadata["base"] != base.fingerprint():
                raise ValueError("made otherwise or over another base")
            network = textcnn(base)
            network.load_state_dict(weights)
            result = Accuracy(**metadata["accuracy"])
        except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                "{path} is not a style classifier for this base ({error}). Measure again.", path=path, error=error
            ) from None
        return cls(base, network.eval(), result)


def short(base: BaseModel) -> str:
    return base.fingerprint().removeprefix("sha256:")[:12]


def accuracy(right: dict[str, list[bool]]) -> Accuracy:
    def share(marks: list[bool]) -> float | None:
        return round(100 * sum(marks) / len(marks), 1) if marks else None

    negatives = [*right["general"], *right["reworded"]]
    style, other = share(right["style"]) or 0.0, share(negatives) or 0.0
    return Accuracy(
        all=round((style + other) / 2, 1),
        style=style,
        general=share(right["general"]),
        reworded=share(right["reworded"]),
        texts=len(right["style"]) + len(negatives),
    )


def tokens(base: BaseModel, texts: Sequence[str]) -> list[list[int]]:
    """Target tokens of each text without special tokens; at least one, at most LONGEST."""
    with base.lock:
        rows = base.encode_target([" ".join(text.split()) for text in texts])
    return [[token for token in row if token not in base.special_ids][:LONGEST] or [base.pad] for row in rows]


def embeddings(base: BaseModel, ids: torch.Tensor) -> torch.Tensor:
    """The base's word vectors (B, T, d), normalised to one length, so that word frequency has no influence."""
    with torch.no_grad():
        result = base.model.get_output_embeddings().weight[ids].float()  # (B, T, d)
        result = 4 * result / result.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        return result * (ids != base.pad)[..., None]


def textcnn(base: BaseModel) -> nn.Module:
    """Convolutions over one to four tokens, the maximum of each filter over the text, and one output."""

    class TextCNN(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.windows = nn.ModuleList(nn.Conv1d(width, FILTERS, size, padding=size - 1) for size in WIDTHS)
            self.output = nn.Linear(FILTERS * len(WIDTHS), 1)

        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            turned = vectors.transpose(1, 2)  # (B, d, T)
            strongest = [torch.relu(window(turned)).amax(-1) for window in self.windows]  # (B, F) each
            hidden = nn.functional.dropout(torch.cat(strongest, 1), DROPOUT, self.training)  # (B, W F)
            return self.output(hidden).squeeze(-1)  # (B,)

    return TextCNN(int(base.model.get_output_embeddings().weight.shape[1])).to(base.device)


def fit(base: BaseModel, rows: dict[str, list[tuple[int, list[int]]]], seed: int, progress: Progress, turn: int) -> nn.Module:
    """Train one network, returned in evaluation mode; half of its training texts are in the style."""
    pick = random.Random(seed)
    torch.manual_seed(seed)
    network = textcnn(base)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    lengths = [len(ids) for part in rows.values() for _, ids in part]
    network.train()
    for epoch in range(EPOCHS):
        progress.advance(turn + epoch / EPOCHS, FOLDS + 1)
        for batch, labels in batches(rows, lengths, pick):
            progress.check()
            ids = base.pad_batch(batch)  # (B, T)
            targets = torch.tensor(labels, device=base.device)  # (B,)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(embeddings(base, ids)), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def batches(
    rows: dict[str, list[tuple[int, list[int]]]], lengths: Sequence[int], pick: random.Random
) -> Iterator[tuple[list[list[int]], list[float]]]:
    """The batches of one epoch. Half of the texts are cut to the length of a random text, so that length carries no information."""
    style = pick.sample(rows["style"], min(MOST, len(rows["style"])))
    kinds = [rows[name] for name in ("general", "reworded") if rows[name]]
    negatives = [row for kind in kinds for row in pick.choices(kind, k=len(style) // len(kinds))]
    examples = [(ids, 1.0) for _, ids in style] + [(ids, 0.0) for _, ids in negatives]
    pieces = []
    for ids, label in examples:
        if pick.random() < 0.5:
            size = min(len(ids), max(3, pick.choice(lengths)))
            begin = pick.randint(0, len(ids) - size)
            pieces.append((ids[begin : begin + size], label))
        else:
            pieces.append((ids, label))
    pick.shuffle(pieces)
    groups = []
    for begin in range(0, len(pieces), 8 * BATCH):  # similar lengths within a batch, to limit padding
        window = sorted(pieces[begin : begin + 8 * BATCH], key=lambda piece: len(piece[0]))
        groups += [window[i : i + BATCH] for i in range(0, len(window), BATCH)]
    pick.shuffle(groups)
    for part in groups:
        yield [ids for ids, _ in part], [label for _, label in part]


def values(base: BaseModel, network: nn.Module, rows: Sequence[Sequence[int]]) -> list[float]:
    """The network's probability, 0 to 1, for each row of tokens."""
    result = [0.0] * len(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    with torch.inference_mode():
        for begin in range(0, len(order), 64):
            part = order[begin : begin + 64]
            ids = base.pad_batch([rows[i] for i in part])  # (B, T)
            for i, value in zip(part, network(embeddings(base, ids)).sigmoid().tolist(), strict=True):
                result[i] = value
    return result
