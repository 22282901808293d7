"""The two Transformer blocks with hand-written gradients, for training on a CPU.

With autograd, a layer of transformers runs as about thirty kernels, most of which only move memory. Here each block is one
function: bias and ReLU are fused into the matrix product (oneDNN post-operations), query, key and value are computed in one
product, and tensors for the backward pass are saved once. Both are post-norm, like Marian's: y = LayerNorm(x + Dropout(f(x))).

Shapes: B rows of L tokens, N = B*L, H heads of width e, d = H*e, f the width of the feed-forward layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

EPSILON = 1e-5  # of the layer normalisation, the default of torch.nn.LayerNorm


def linear(x: Tensor, weight: Tensor, bias: Tensor, activation: str = "none") -> Tensor:
    """x W^T + b, optionally with "relu", in one pass over the output (N, out)."""
    if x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "")
    product = torch.addmm(bias, x, weight.T)
    return product.relu_() if activation == "relu" else product


def column_sums(gradient: Tensor) -> Tensor:
    """The gradient of a bias (out,), as a product with ones, which is faster than `sum` and accumulates in float32."""
    return (gradient.new_ones(1, len(gradient)) @ gradient)[0]


def turned(x: Tensor) -> Tensor:
    """x^T (d, N), copied to contiguous memory, so that the gradient of a weight is an ordinary product. That is faster than a
    product with a transposed left side (oneDNN 3, AMX).
    """
    return x.T.contiguous()


class Residual:
    """Dropout, residual connection and layer normalisation at the end of a block, and their gradients."""

    @staticmethod
    def forward(x: Tensor, update: Tensor, weight: Tensor, bias: Tensor, dropout: float) -> tuple[Tensor, ...]:
        """Return y and the inputs of `backward`: the sum, its mean and rstd, and the dropout mask (empty without dropout)."""
        keep = x.new_empty(0)
        if dropout:
            keep = torch.empty_like(update).bernoulli_(1 - dropout).div_(1 - dropout)  # (N, d)
            update.mul_(keep)
        total = update.add_(x)  # (N, d)
        y, mean, rstd = torch.native_layer_norm(total, [x.shape[-1]], weight, bias, EPSILON)  # (N, d)
        return y, total, mean, rstd, keep

    @staticmethod
    def backward(
        dy: Tensor, total: Tensor, mean: Tensor, rstd: Tensor, keep: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of the sum (that is, of x through the residual), the update, and the normalisation's weight and bias."""
        dtotal, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
            dy.contiguous(), total, [total.shape[-1]], mean, rstd, weight, bias, [True, True, True]
        )  # (N, d), (d,), (d,)
        return dtotal, dtotal * keep if keep.numel() else dtotal, dweight, dbias


class FeedForwardBlock(torch.autograd.Function):
    """LayerNorm(x + W2 relu(W1 x + b1) + b2)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, *weights: Tensor) -> Tensor:
        w1, b1, w2, b2, wn, bn = weights
        hidden = linear(x, w1, b1, "relu")  # (N, f)
        y, total, mean, rstd, keep = Residual.forward(x, linear(hidden, w2, b2), wn, bn, dropout)
        ctx.save_for_backward(x, w1, w2, wn, bn, hidden, total, mean, rstd, keep)
        return y  # (N, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, w1, w2, wn, bn, hidden, total, mean, rstd, keep = ctx.saved_tensors
        dtotal, dupdate, dwn, dbn = Residual.backward(dy, total, mean, rstd, keep, wn, bn)
        dw2, db2 = turned(dupdate) @ hidden, column_sums(dupdate)  # (d, f), (d,)
        dhidden = torch.ops.aten.threshold_backward(dupdate @ w2, hidden, 0)  # (N, f)
        dw1, db1 = (turned(x) @ dhidden).T, column_sums(dhidden)  # (f, d), (f,)
        dx = (dhidden @ w1).add_(dtotal)  # (N, d)
        return dx, None, dw1, db1, dw2, db2, dwn, dbn


def split_heads(projected: Tensor, rows: int, parts: int, heads: int) -> Tensor:
    """(B*L, parts*d) to (parts, B*H, L, e)."""
    length = len(projected) // rows
    apart = projected.view(rows, length, parts, heads, -1).permute(2, 0, 3, 1, 4)  # (parts, B, H, L, e)
    return apart.reshape(parts, rows * heads, length, -1)


def join_heads(apart: Tensor, rows: int) -> Tensor:
    """(parts, B*H, L, e) to (B*L, parts*d)."""
    parts, batch, length, width = apart.shape
    together = apart.view(parts, rows, batch // rows, length, width).permute(1, 3, 0, 2, 4)  # (B, L, parts, H, e)
    return together.reshape(rows * length, -1)


class AttentionBlock(torch.autograd.Function):
    """LayerNorm(x + Wo attention(Wq x, Wk m, Wv m) + bo), where m is `memory` (the encoder's output) or, if None, x.

    `mask` (B, 1, Q, K) is added to the scores. `weights` are those of the q, k, v and output projections and of the
    normalisation, each weight followed by its bias.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, memory: Tensor | None, mask: Tensor, heads: int, dropout: float, *weights: Tensor) -> Tensor:
        wq, bq, wk, bk, wv, bv, wo, bo, wn, bn = weights
        rows, scale = len(mask), (x.shape[-1] // heads) ** -0.5
        self_attention = memory is None
        attended = x if memory is None else memory
        first, first_bias = (torch.cat([wq, wk, wv]), torch.cat([bq, bk, bv])) if self_attention else (wq, bq)
        projected = split_heads(linear(x, first, first_bias), rows, 3 if self_attention else 1, heads)  # (3 or 1, B*H, Q, e)
        if self_attention:
            second = first
            q, k, v = projected.unbind()  # (B*H, L, e) each
        else:
            second = torch.cat([wk, wv])
            q = projected[0]  # (B*H, Q, e)
            k, v = split_heads(linear(attended, second, torch.cat([bk, bv])), rows, 2, heads).unbind()  # (B*H, K, e)
        q = q.mul_(scale)
        scores = torch.bmm(q, k.transpose(1, 2))  # (B*H, Q, K)
        scores.view(rows, heads, *scores.shape[1:]).add_(mask)
        p = torch.softmax(scores, -1)  # (B*H, Q, K)
        context = join_heads(torch.bmm(p, v)[None], rows)  # (N, d)
        y, total, mean, rstd, keep = Residual.forward(x, linear(context, wo, bo), wn, bn, dropout)
        ctx.rows, ctx.heads, ctx.scale, ctx.own = rows, heads, scale, self_attention
        ctx.save_for_backward(x, attended, first, second, wo, wn, bn, q, k, v, p, context, total, mean, rstd, keep)
        return y  # (N, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, memory, first, second, wo, wn, bn, q, k, v, p, context, total, mean, rstd, keep = ctx.saved_tensors
        dtotal, dupdate, dwn, dbn = Residual.backward(dy, total, mean, rstd, keep, wn, bn)
        dwo, dbo = turned(dupdate) @ context, column_sums(dupdate)  # (d, d), (d,)
        dcontext = split_heads(dupdate @ wo, ctx.rows, 1, ctx.heads)[0]  # (B*H, Q, e)
        dp = torch.bmm(dcontext, v.transpose(1, 2))  # (B*H, Q, K)
        dscores = torch.ops.aten._softmax_backward_data(dp, p, -1, p.dtype)  # (B*H, Q, K)
        dq = torch.bmm(dscores, k).mul_(ctx.scale)  # (B*H, Q, e)
        dk = torch.bmm(dscores.transpose(1, 2), q)  # (B*H, K, e)
        dv = torch.bmm(p.transpose(1, 2), dcontext)  # (B*H, K, e)
        d = x.shape[-1]
        if ctx.own:
            dall = join_heads(torch.stack([dq, dk, dv]), ctx.rows)  # (N, 3d)
            dw, db = (turned(x) @ dall).T.split(d), column_sums(dall).split(d)
            dx, dmemory = (dall @ first).add_(dtotal), None  # (N, d)
        else:
            dfirst = join_heads(dq[None], ctx.rows)  # (N, d)
            dsecond = join_heads(torch.stack([dk, dv]), ctx.rows)  # (M, 2d)
            dw = ((turned(x) @ dfirst).T, *(turned(memory) @ dsecond).T.split(d))
            db = (column_sums(dfirst), *column_sums(dsecond).split(d))
            dx = (dfirst @ first).add_(dtotal)  # (N, d)
            dmemory = dsecond @ second  # (M, d)
        return dx, dmemory, None, None, None, dw[0], db[0], dw[1], db[1], dw[2], db[2], dwo, dbo, dwn, dbn


def attention_block(x: Tensor, memory: Tensor | None, mask: Tensor, attention: Any, norm: Any, dropout: float) -> Tensor:
    """Apply transformers' MarianAttention and its LayerNorm to x (B*L, d); self-attention if `memory` is None."""
    projections = (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj, norm)
    weights = [tensor for module in projections for tensor in (module.weight, module.bias)]
    return AttentionBlock.apply(x, memory, mask, attention.num_heads, dropout, *weights)


def feed_forward_block(x: Tensor, layer: Any, dropout: float) -> Tensor:
    """Apply the feed-forward block of a Marian layer to x (B*L, d)."""
    modules: Sequence[Any] = (layer.fc1, layer.fc2, layer.final_layer_norm)
    weights = [tensor for module in modules for tensor in (module.weight, module.bias)]
    return FeedForwardBlock.apply(x, dropout, *weights)


class SampledCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross-entropy of rows x (n, d) over candidate words (K, d), with `labels` (n,), in nats.

    The softmax is converted into the gradient in place. `correction` (K,) is added to the logits (Jean et al. 2015).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, words: Tensor, correction: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        logits = linear(x, words, correction)  # (n, K)
        label_logit = logits.gather(1, labels[:, None]).float()  # (n, 1)
        p = torch.softmax(logits, -1)  # (n, K)
        normaliser = label_logit - p.gather(1, labels[:, None]).float().log_()  # (n, 1) log of the sum of exponentials
        mean_logit = x.float() @ words.float().mean(0) + correction.float().mean()  # (n,)
        loss = (normaliser[:, 0] - (1 - smoothing) * label_logit[:, 0] - smoothing * mean_logit).mean()
        p.add_(-smoothing / p.shape[1])
        p.scatter_add_(1, labels[:, None], p.new_full((len(p), 1), smoothing - 1))  # (n, K) gradient of the logits
        ctx.save_for_backward(x, words, p)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor | None, ...]:
        x, words, p = ctx.saved_tensors
        share = float(dloss) / len(x)
        return (p @ words).mul_(share), (turned(x) @ p).mul_(share).T, None, None, None
