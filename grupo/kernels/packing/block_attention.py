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
Total = Float[Tensor, "B H q"]  # logarithm of the sum of all exponentiated scores

_fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_fused_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@dataclass(frozen=True)
class How:
    """What a model says of its attention."""

    scale: float
    window: float = inf  # a token sees so many tokens, itself among them
    softcap: float = 0.0  # scores are bent to stay below it; 0: they are not

    @property
    def reach(self) -> int:
        """The window as a whole number; where there is none, more than there are tokens."""
        return int(min(self.window, 1 << 62))


@dataclass(frozen=True)
class Part:
    """Queries and the keys they see: all, those up to their own, or where `mask` is 0, not -inf."""

    q: Queries
    k: Keys
    v: Keys
    causal: bool = False
    mask: Float[Tensor, "#B 1 q k"] | None = None


class Kernel(Protocol):
    """How a part is worked out."""

    def forward(self, part: Part) -> tuple[Queries, Total]: ...

    def backward(
        self, slope: Queries, part: Part, out: Queries, total: Total
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients in q, k and v, where `out` and `total` are those of all parts together."""
        ...


def kernel_for(how: How, q: Tensor, v: Tensor) -> Kernel:
    """The fastest kernel that can work it out."""
    fused = q.device.type == "cpu" and not how.softcap and q.shape[-1] == v.shape[-1]
    return Fused(how.scale) if fused else Plain(how.scale, how.softcap)


@dataclass(frozen=True)
class Fused:
    """torch's own for processors: the scores are never all in memory."""

    scale: float

    def forward(self, part: Part) -> tuple[Queries, Total]:
        qkv = part.q, part.k, part.v
        return _fused(*qkv, 0.0, part.causal, attn_mask=part.mask, scale=self.scale)

    def backward(
        self, slope: Queries, part: Part, out: Queries, total: Total
    ) -> tuple[Tensor, Tensor, Tensor]:
        given = (slope, part.q, part.k, part.v, out, total, 0.0, part.causal)
        return _fused_backward(*given, attn_mask=part.mask, scale=self.scale)


@dataclass(frozen=True)
class Plain:
    """Any device, softcaps, values of another width than keys: with all scores of a part."""

    scale: float
    softcap: float = 0.0

    def forward(self, part: Part) -> tuple[Queries, Total]:
        scores, _ = self._scores(part)
        total = scores.logsumexp(-1)
        p = (scores - _finite(total)[..., None]).exp()
        return (p.to(part.v) @ part.v[:, :, None]).flatten(1, 2), total.flatten(1, 2)

    def backward(
        self, slope: Queries, part: Part, out: Queries, total: Total
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores, bent = self._scores(part)
        shape = (part.k.shape[1], -1)
        slope, out = slope.unflatten(1, shape).to(scores), out.unflatten(1, shape).to(scores)
        p = (scores - _finite(total).unflatten(1, shape)[..., None]).exp()
        reach = slope @ part.v[:, :, None].to(p).mT - (slope * out).sum(-1, True)
        push = (p * reach * bent * self.scale).to(part.q)
        dq = (push @ part.k[:, :, None]).flatten(1, 2)
        dk = (push.mT @ part.q.unflatten(1, shape)).sum(2)
        return dq, dk, (p.mT @ slope).sum(2).to(part.v)

    def _scores(self, part: Part) -> tuple[Tensor, Tensor | float]:
        """Scores (B, K, H/K, q, k), and how much of a change the softcap lets through."""
        q, k = part.q.unflatten(1, (part.k.shape[1], -1)), part.k[:, :, None]
        scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * self.scale
        bent: Tensor | float = 1.0
        if self.softcap:
            scores = torch.tanh(scores / self.softcap)
            bent, scores = 1 - scores**2, scores * self.softcap
        if part.mask is not None:
            scores = scores + part.mask[:, :, None].to(scores)
        if part.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, -inf)
        return scores, bent


def _finite(total: Tensor) -> Tensor:
    return total.masked_fill(total.isneginf(), 0.0)
