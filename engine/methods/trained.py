"""A method with its trained module, as a plugin holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import nn

from engine.base.adapter import Adapter
from engine.methods.interface import Method

if TYPE_CHECKING:
    from engine.methods.knn.decoder import Knn


class TrainedMethod(Protocol):
    """A method and its module over which a datastore is built: keys are recorded with the method attached."""

    method: Method
    module: nn.Module

    def with_datastore(self, knn: Knn) -> Adapter:
        """The same method and module combined with this datastore."""
