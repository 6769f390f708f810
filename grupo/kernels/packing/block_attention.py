"""Attention to one block of keys; the results of several blocks are merged exactly.

A block yields its output and the log-sum-exp of its scores. Merging weights the outputs by their
normalisers; the gradient of a block needs only the merged output and log-sum-exp.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.units import TOKENS

Queries = Float[Tensor, "B H q d"]
Keys = Float[Tensor, "B K k d"]  # K divides H: several query heads may share keys and values
LogSumExp = Float[Tensor, "B H q"]  # of the scores of each query

_fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_fused_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@dataclass(frozen=True)
class AttentionConfig:
    """Attention parameters of a layer.

    Args:
        scale: factor of the scores.
        window: number of tokens that a token sees, including itself.
        softcap: bound c of the scores, c * tanh(score / c); 0 applies none.
    """

    scale: float
    window: Annotated[float, TOKENS] = inf
    softcap: float = 0.0

    @property
    def int_window(self) -> int:
        """The window as an integer; an infinite one becomes 2**62."""
        return int(min(self.window, 1 << 62))


@dataclass(frozen=True)
class AttentionBlock:
    """Queries with their keys and values: full, causal, or with an additive mask."""

    q: Queries
    k: Keys
    v: Keys
    causal: bool = False
    mask: Float[Tensor, "#B 1 q k"] | None = None


class Kernel(Protocol):
    """An implementation of attention to one block."""

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]:
        """Outputs and log-sum-exp of the block."""
        ...

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of q, k and v; `out` and `lse` are merged over all blocks."""
        ...


def kernel_for(config: AttentionConfig, q: Tensor, v: Tensor) -> Kernel:
    """The fastest kernel that supports the configuration, device and shapes."""
    fused = q.device.type == "cpu" and not config.softcap and q.shape[-1] == v.shape[-1]
    return FusedKernel(config.scale) if fused else ReferenceKernel(config.scale, config.softcap)


@dataclass(frozen=True)
class FusedKernel:
    """torch's flash attention for CPUs, which never stores all scores."""

    scale: float

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]:
        qkv = block.q, block.k, block.v
        return _fused(*qkv, 0.0, block.causal, attn_mask=block.mask, scale=self.scale)

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        args = (grad_out, block.q, block.k, block.v, out, lse, 0.0, block.causal)
        return _fused_backward(*args, attn_mask=block.mask, scale=self.scale)


@dataclass(frozen=True)
class ReferenceKernel:
    """Plain torch, for any device, softcaps, and values wider or narrower than keys."""

    scale: float
    softcap: float = 0.0

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]:
        scores, _ = self._scores(block)
        lse = scores.logsumexp(-1)
        p = (scores - _finite_lse(lse)[..., None]).exp()
        return (p.to(block.v) @ block.v[:, :, None]).flatten(1, 2), lse.flatten(1, 2)

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores, softcap_grad = self._scores(block)
        shape = (block.k.shape[1], -1)
        grad_out = grad_out.unflatten(1, shape).to(scores)
        out = out.unflatten(1, shape).to(scores)
        p = (scores - _finite_lse(lse).unflatten(1, shape)[..., None]).exp()
        grad_p = grad_out @ block.v[:, :, None].to(p).mT - (grad_out * out).sum(-1, True)
        grad_scores = (p * grad_p * softcap_grad * self.scale).to(block.q)
        dq = (grad_scores @ block.k[:, :, None]).flatten(1, 2)
        dk = (grad_scores.mT @ block.q.unflatten(1, shape)).sum(2)
        return dq, dk, (p.mT @ grad_out).sum(2).to(block.v)

    def _scores(self, block: AttentionBlock) -> tuple[Tensor, Tensor | float]:
        """Scores (B, K, H/K, q, k), and the derivative of the softcap at them."""
        q = block.q.unflatten(1, (block.k.shape[1], -1))
        k = block.k[:, :, None]
        scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * self.scale
        softcap_grad: Tensor | float = 1.0
        if self.softcap:
            tanh = torch.tanh(scores / self.softcap)
            softcap_grad = 1 - tanh**2
            scores = tanh * self.softcap
        if block.mask is not None:
            scores = scores + block.mask[:, :, None].to(scores)
        if block.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(future, -inf)
        return scores, softcap_grad


def _finite_lse(lse: Tensor) -> Tensor:
    """Replaces -inf, the log-sum-exp of queries that see nothing, by 0."""
    return lse.masked_fill(lse.isneginf(), 0.0)


def window_mask(distance: Tensor, window: Annotated[float, TOKENS], like: Tensor) -> Tensor:
    """Additive mask (1, 1, q, k): 0 within the window, -inf outside.

    Args:
        distance: from each query back to each key, in tokens.
        window: number of tokens that a token sees, including itself.
        like: tensor with the dtype and device of the mask.
    """
    mask = torch.zeros_like(distance, dtype=like.dtype).masked_fill(distance >= window, -inf)
    return mask[None, None]


def transpose_heads(x: Tensor) -> Tensor:
    """(B, L, H, d) as (B, H, L, d), and back."""
    return x.transpose(1, 2)
