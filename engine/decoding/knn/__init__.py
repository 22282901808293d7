"""kNN decoding: the next token's distribution is mixed with that of the nearest hidden states in a datastore of the samples.

Khandelwal et al., Nearest Neighbor Machine Translation (2021); with a customized model, "kNN decoding" of paper 1.
"""

from engine.decoding.knn.options import KnnOptions

__all__ = ["KnnOptions"]
