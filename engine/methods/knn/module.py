"""The module of kNN-MT, which holds the datastore and has no weights to train."""

from __future__ import annotations

from torch import nn

from engine.methods.knn.decoder import Knn


class KnnModule(nn.Module):
    """Holds kNN decoding with its datastore; the state_dict is empty."""

    def __init__(self, knn: Knn) -> None:
        super().__init__()
        self.knn = knn
