"""A deeper base from a trained one: adds encoder layers and feed-forward units that at first hardly change its output.

A new encoder layer is inserted after each trained one. Gong et al. 2019 stack copies of trained layers; a layer that starts as
the identity, as in Chen et al. 2016, harms a post-norm model less (figures in docs/train-a-base.md). Its residual updates are
zero, its first normalisation standardises, and its second restores the mean spread and offset of the vectors. The output
weights of new feed-forward units are zero, so widening is exact. The decoder, which plugins hook into, keeps its shape.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import OptionError


def grow_encoder(model: Any, layers: int, width: int) -> Any:
    """Grow a Marian model to `layers` encoder layers with `width` feed-forward units each; 0 keeps the present number.

    The model is changed in place and returned. Raises OptionError if it is already larger, or if `layers` is not a multiple
    of its number of layers.
    """
    config, encoder = model.config, model.model.encoder
    layers, width = layers or config.encoder_layers, width or config.encoder_ffn_dim
    if layers % config.encoder_layers:
        raise OptionError(f"encoder_layers: the base to go on from has {config.encoder_layers}, which {layers} is no multiple of.")
    if width < config.encoder_ffn_dim:
        raise OptionError(f"encoder_ffn: the base to go on from has {config.encoder_ffn_dim}, which is more than {width}.")
    with torch.no_grad():
        for layer in encoder.layers:
            _widen(layer, width)
        copies = layers // config.encoder_layers - 1
        encoder.layers = nn.ModuleList(
            each for layer in encoder.layers for each in (layer, *(_identity_after(layer) for _ in range(copies)))
        )
    config.encoder_layers, config.encoder_ffn_dim = layers, width
    return model


def _widen(layer: Any, width: int) -> None:
    """Add feed-forward units up to `width`, with random input weights and zero output weights."""
    more = width - layer.fc1.out_features
    if not more:
        return
    first = torch.empty(more, layer.fc1.in_features)
    nn.init.xavier_uniform_(first)
    second = torch.zeros(layer.fc2.out_features, more)
    layer.fc1.weight, layer.fc1.bias = (_joined(layer.fc1.weight, first, 0), _joined(layer.fc1.bias, torch.zeros(more), 0))
    layer.fc2.weight = _joined(layer.fc2.weight, second, 1)
    layer.fc1.out_features = layer.fc2.in_features = width


def _joined(old: Tensor, new: Tensor, dimension: int) -> nn.Parameter:
    return nn.Parameter(torch.cat([old.detach(), new.to(old)], dimension))


def _identity_after(layer: Any) -> Any:
    """A layer of the same shape that approximately reproduces the output of `layer`."""
    identity = copy.deepcopy(layer)
    attention, last = identity.self_attn, layer.final_layer_norm
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj, identity.fc1):
        nn.init.xavier_uniform_(projection.weight)
        projection.bias.zero_()
    for projection in (attention.out_proj, identity.fc2):
        projection.weight.zero_()
        projection.bias.zero_()
    identity.self_attn_layer_norm.weight.fill_(1.0)
    identity.self_attn_layer_norm.bias.zero_()
    identity.final_layer_norm.weight.fill_(float((last.weight.square().mean() + last.bias.var()).sqrt()))
    identity.final_layer_norm.bias.fill_(float(last.bias.mean()))
    return identity
