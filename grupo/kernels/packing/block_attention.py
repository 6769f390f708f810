"""Attention to a part of what a token attends to: several parts make the whole, exactly.

A part gives its output and the logarithm of its normaliser. Outputs are then weighed by their
normalisers; the gradient of each part needs only the whole's output and normaliser.
"""

from dataclasses import dataclass
from math import inf
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

Queries = Float[Tensor, "B H q d"]
Keys = Float[Tensor, "B K k d"]  # K divides H: several heads may share keys and values
LogSumExp = Float[Tensor, "B H q"]  # logarithm of the sum of all exponentiated scores

_fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_fused_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@dataclass(frozen=True)
class AttentionConfig:
    """What a model says of its attention."""

    scale: float
    window: float = inf  # a token sees so many tokens, itself among them
    softcap: float = 0.0  # scores are bent to stay below it; 0: they are not

    @property
    def int_window(self) -> int:
        """The window as a whole number; where there is none, more than there are tokens."""
        return int(min(self.window, 1 << 62))


@dataclass(frozen=True)
class AttentionBlock:
    """Queries and the keys they see: all, those up to their own, or where `mask` is 0, not -inf."""

    q: Queries
    k: Keys
    v: Keys
    causal: bool = False
    mask: Float[Tensor, "#B 1 q k"] | None = None


class Kernel(Protocol):
    """How a part is worked out."""

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]: ...

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients in q, k and v, where `out` and `total` are those of all parts together."""
        ...


def kernel_for(config: AttentionConfig, q: Tensor, v: Tensor) -> Kernel:
    """The fastest kernel that can work it out."""
    fused = q.device.type == "cpu" and not config.softcap and q.shape[-1] == v.shape[-1]
    return FusedKernel(config.scale) if fused else ReferenceKernel(config.scale, config.softcap)


@dataclass(frozen=True)
class FusedKernel:
    """torch's own for processors: the scores are never all in memory."""

    scale: float

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]:
        qkv = block.q, block.k, block.v
        return _fused(*qkv, 0.0, block.causal, attn_mask=block.mask, scale=self.scale)

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        given = (grad_out, block.q, block.k, block.v, out, lse, 0.0, block.causal)
        return _fused_backward(*given, attn_mask=block.mask, scale=self.scale)


@dataclass(frozen=True)
class ReferenceKernel:
    """Any device, softcaps, values of another width than keys: with all scores of a part."""

    scale: float
    softcap: float = 0.0

    def forward(self, block: AttentionBlock) -> tuple[Queries, LogSumExp]:
        scores, _ = self._scores(block)
        total = scores.logsumexp(-1)
        p = (scores - _finite_lse(total)[..., None]).exp()
        return (p.to(block.v) @ block.v[:, :, None]).flatten(1, 2), total.flatten(1, 2)

    def backward(
        self, grad_out: Queries, block: AttentionBlock, out: Queries, lse: LogSumExp
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores, bent = self._scores(block)
        shape = (block.k.shape[1], -1)
        grad_out, out = grad_out.unflatten(1, shape).to(scores), out.unflatten(1, shape).to(scores)
        p = (scores - _finite_lse(lse).unflatten(1, shape)[..., None]).exp()
        reach = grad_out @ block.v[:, :, None].to(p).mT - (grad_out * out).sum(-1, True)
        push = (p * reach * bent * self.scale).to(block.q)
        dq = (push @ block.k[:, :, None]).flatten(1, 2)
        dk = (push.mT @ block.q.unflatten(1, shape)).sum(2)
        return dq, dk, (p.mT @ grad_out).sum(2).to(block.v)

    def _scores(self, block: AttentionBlock) -> tuple[Tensor, Tensor | float]:
        """Scores (B, K, H/K, q, k), and how much of a change the softcap lets through."""
        q, k = block.q.unflatten(1, (block.k.shape[1], -1)), block.k[:, :, None]
        scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * self.scale
        bent: Tensor | float = 1.0
        if self.softcap:
            scores = torch.tanh(scores / self.softcap)
            bent, scores = 1 - scores**2, scores * self.softcap
        if block.mask is not None:
            scores = scores + block.mask[:, :, None].to(scores)
        if block.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, -inf)
        return scores, bent


def _finite_lse(lse: Tensor) -> Tensor:
    return lse.masked_fill(lse.isneginf(), 0.0)
