"""Adaptive choice of the share and number of neighbours for each token by a small network (Zheng et al., Adaptive Nearest
Neighbor Machine Translation, 2021, section 3).

From the distances of the K nearest neighbours and the number of distinct tokens among the first i of them, a two-layer network
predicts a distribution over "none, 1, 2, 4, … K neighbours":

    p(y) = π_0 p_MT(y) + Σ_k π_k p_kNN,k(y)

It is trained on held-out pairs by the likelihood of the reference tokens. Unlike in the paper, distances are standardised
logarithms, so that one learning rate suits bases of every size.

adaptive.safetensors: the network's weights, with `mean` and `std` of the logarithms.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from engine.core.progress import Progress
from engine.core.tensor_files import save_tensors
from engine.errors import BundleError
from engine.methods.knn.interpolate import shares
from engine.methods.knn.options import MOST_WEIGHT
from engine.methods.knn.tune import Evidence

FILE = "adaptive.safetensors"
HIDDEN = 32
UPDATES, BATCH, RATE = 1000, 256, 1e-3
FAR = 1e9  # replaces larger and infinite distances in the logarithm


class MetaK(nn.Module):
    """Predicts π over "none, 1, 2, 4, …" neighbours and converts it into the probability mass of each neighbour."""

    mean: Tensor
    std: Tensor

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.counts = [2**i for i in range(k.bit_length()) if 2**i <= k]
        self.hidden = nn.Linear(2 * k, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1 + len(self.counts))
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def features(self, distances: Tensor, tokens: Tensor) -> Tensor:
        """Features (R, 2K): standardised log-distances, and the number of distinct tokens among the first i neighbours over K."""
        logs = torch.log1p(distances.clamp(max=FAR))  # (R, K)
        same = tokens[:, :, None] == tokens[:, None, :]  # (R, K, K)
        first = ~torch.tril(same, diagonal=-1).any(-1)  # (R, K), no earlier neighbour has this token
        return torch.cat([(logs - self.mean) / self.std, first.cumsum(1) / self.k], 1)  # (R, 2K)

    def forward(self, distances: Tensor, tokens: Tensor, temperature: float) -> Tensor:
        """Probability masses (R, K) of the neighbours; a row sums to 1 - π_0."""
        choice = self.out(torch.tanh(self.hidden(self.features(distances, tokens)))).softmax(-1)  # (R, 1 + C)
        total = torch.zeros_like(distances)  # (R, K)
        for i, count in enumerate(self.counts):
            part = choice[:, i + 1, None] * shares(distances[:, :count], temperature)  # (R, count)
            total = total + nn.functional.pad(part, (0, distances.shape[1] - count))  # (R, K)
        return total


def train_adaptive(evidence: Evidence, k: int, temperature: float, progress: Progress | None = None) -> MetaK:
    """Train on nine tenths of the evidence's sentences and keep the weights that are best on the rest; deterministic."""
    progress = progress or Progress()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        network = MetaK(k)
        nn.init.normal_(network.hidden.weight, std=0.1)
        distances, tokens = evidence.distances[:, :k].float(), evidence.tokens[:, :k]  # (M, K), (M, K)
        base_p = evidence.log_p.double().exp()  # (M,)
        hit = tokens == evidence.gold[:, None]  # (M, K)
        logs = torch.log1p(distances.clamp(max=FAR))  # (M, K)
        network.mean, network.std = logs.mean(), logs.std(unbiased=False).clamp(min=1e-3)
        held_out = evidence.sentences % 10 == 9  # (M,)
        if not bool(held_out.any()) or bool(held_out.all()):
            held_out = torch.zeros_like(held_out)
            held_out[::10] = True
        learn, check = (~held_out).nonzero()[:, 0], held_out.nonzero()[:, 0]  # (m,), (m',)

        def loss(rows: Tensor) -> Tensor:
            mass = network(distances[rows], tokens[rows], temperature).double()  # (r, K)
            total = (1 - mass.sum(1)) * base_p[rows] + (mass * hit[rows]).sum(1)  # (r,)
            return -total.clamp(min=1e-12).log().mean()  # ()

        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        best, selected = float("inf"), {key: value.clone() for key, value in network.state_dict().items()}
        for update in range(UPDATES + 1):
            if update % 100 == 0:
                progress.advance(update, UPDATES)
                with torch.no_grad():
                    value = float(loss(check))
                if value < best:
                    best, selected = value, {key: item.clone() for key, item in network.state_dict().items()}
            rows = learn[torch.randint(len(learn), (min(BATCH, len(learn)),))]  # (r,)
            optimizer.zero_grad(set_to_none=True)
            loss(rows).backward()
            optimizer.step()
        network.load_state_dict(selected)
    return network.eval().requires_grad_(False)


def save_adaptive(network: MetaK, folder: Path) -> Path:
    return save_tensors(folder / FILE, network.state_dict(), "the adaptive network")


def load_adaptive(folder: Path, k: int) -> MetaK:
    """Load the network from a folder. Raises BundleError if it is missing or not for k neighbours."""
    if not (folder / FILE).exists():
        raise BundleError("it has no {file}, which its decoding needs. Get a new copy of the bundle.", file=FILE)
    network = MetaK(k)
    try:
        network.load_state_dict(load_file(folder / FILE))
    except (SafetensorError, RuntimeError):
        raise BundleError("{file} is not a network of {k} neighbours. Get a new copy of the bundle.", file=FILE, k=k) from None
    return network.eval().requires_grad_(False)


def limited(mass: Tensor) -> Tensor:
    """The masses (R, k), scaled down in rows that sum to more than `MOST_WEIGHT`."""
    total = mass.sum(-1, keepdim=True)  # (R, 1)
    return mass * (MOST_WEIGHT / total.clamp(min=MOST_WEIGHT))  # (R, k)
