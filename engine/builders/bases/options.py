"""Settings for training a base."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class Size:
    """The shape of a Marian model; heads are 64 wide, feed-forward layers four times d_model unless `encoder_ffn` is set."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    vocabulary: int
    encoder_ffn: int = 0


# `base` is Transformer-base of Vaswani et al. (2017). `small` trains on a CPU in hours; `deep` and `medium` need a GPU. `deep`,
# the shape of the bundled bases, is `small` with a larger encoder: the decoder, which runs once per token and hypothesis, stays
# as cheap as that of `small` (Kasai et al. 2021).
SIZES = {
    "tiny": Size(128, 3, 3, 4000),
    "small": Size(256, 6, 4, 12000),
    "deep": Size(256, 12, 4, 12000, encoder_ffn=2048),
    "medium": Size(384, 6, 4, 12000),
    "base": Size(512, 6, 6, 16000),
}


@dataclass(frozen=True)
class BaseTrainingOptions(Options):
    """Training a base."""

    size: str = option(
        "small",
        "Shape of the model: tiny 3+3 layers of 128, small 6+4 of 256, deep 12+4 of 256, medium 6+4 of 384, base 6+6 of 512.",
        choices=tuple(SIZES),
    )
    width: int = option(0, "Width of the model, a multiple of 64; 0: as the size says.", low=0, high=1024, advanced=True)
    encoder_layers: int = option(
        0,
        "Encoder layers; 0: as the size says, or the base to go on from. A multiple of its number deepens that one.",
        low=0, high=48, advanced=True,
    )  # fmt: skip
    decoder_layers: int = option(0, "Decoder layers; 0: as the size says.", low=0, high=24, advanced=True)
    encoder_ffn: int = option(
        0, "Units of the encoder's feed-forward layers; 0: as the size says, or the base to go on from. More widen that one.",
        low=0, high=8192, advanced=True,
    )  # fmt: skip
    vocabulary: int = option(
        0, "Pieces of the joint vocabulary; 0: as the size says, or twice as many as the text has characters.", low=0, high=64_000
    )
    minutes: float | None = option(
        None, "Stop after this many minutes in all, earlier runs included; the rate falls towards the end.", low=0
    )
    updates: int | None = option(None, "Stop after this many updates in all; the rate falls towards the end.", low=1)
    tokens: int = option(
        0, "Tokens of one side in a batch; 0: 5,120 on a CPU, 65,536 on a GPU. Lower it when memory is short.", low=0
    )
    longest: int = option(110, "Longest sentence in pieces; pairs with a longer side are left out.", low=8, high=500)
    drop_worst: float = option(
        0.1, "Share of each file's pairs left out, the worst by `tailormt base score-pairs` once that was run.", low=0, high=0.9
    )
    row_tokens: int = option(128, "Tokens of a row into which sentences are packed.", low=16, high=1024, advanced=True)
    dropout: float = option(0.0, "Dropout; 0.1 to 0.2 where the data is passed over many times.", low=0, high=0.9)
    label_smoothing: float = option(0.1, "Share of the probability spread over all words.", low=0, high=0.5)
    learning_rate: float = option(1e-3, "Highest rate of AdamW (vectors and embeddings).", low=1e-7, high=1)
    muon_rate: float = option(0.01, "Highest rate of Muon (the layers' matrices); 0: AdamW for all.", low=0, high=1, advanced=True)
    weight_decay: float = option(0.01, "Decoupled weight decay.", low=0, high=1, advanced=True)
    warmup: int = option(300, "Updates in which the rates rise to their highest.", low=0)
    decay: float = option(0.4, "Last share of the training, in which the rates fall to zero.", low=0, high=1)
    candidates: int = option(
        3072, "Words scored in an update: the batch's own and random others, weighted to stand for all; 0: all, as on a GPU.", low=0
    )
    average: float = option(
        0.998, "Decay a step of the averaged weights, which are the ones saved; 0: no averaging.", low=0, high=0.99999
    )
    save_every: float = option(15.0, "Minutes between two checkpoints, each scored on held-out sentences.", low=0.05)
    watched: int = option(100, "Held-out sentences translated at each checkpoint.", low=0)
    compile: str = option(
        "auto", "torch.compile: auto uses it on a GPU; on CPUs measured so far it did not pay.", choices=("auto", "yes", "no"),
        advanced=True,
    )  # fmt: skip
    seed: int = option(1, "Random seed.", low=0)

    def shape(self) -> Size:
        """The model's shape: that of `size`, with the dimensions that are set separately."""
        named = SIZES[self.size]
        return Size(
            self.width or named.d_model, self.encoder_layers or named.encoder_layers,
            self.decoder_layers or named.decoder_layers, self.vocabulary or named.vocabulary, self.encoder_ffn or named.encoder_ffn,
        )  # fmt: skip
