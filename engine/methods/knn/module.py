"""kNN-MT has nothing to train: its module holds the datastore for the base to be attached to, and no weights."""

from __future__ import annotations

from torch import nn

from engine.methods.knn.decoder import Knn


class KnnModule(nn.Module):
    """An empty state_dict around a datastore."""

    def __init__(self, knn: Knn) -> None:
        super().__init__()
        self.knn = knn
