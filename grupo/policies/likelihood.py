"""Log-probability and entropy from logits in one pass, and back with nothing worked out again."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CACHED = 1 << 19  # numbers that are worked on while they are near


def likelihood(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m"], temperature: float = 1.0
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Of each token its log-probability, and the entropy of what it is drawn from, in nats.

    The same as by `log_softmax`, with one tensor of the size of the logits kept instead of five. It
    has one gradient: a second is refused by torch, for the first is worked out in what was kept.
    """
    return _Likelihood.apply(logits, token, temperature)  # pyright: ignore


def widened(x: Tensor) -> Tensor:
    """In float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _Likelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, token: Tensor, temperature: float) -> Any:
        dtype = torch.promote_types(logits.dtype, torch.float32)
        p = torch.empty_like(logits, dtype=dtype)
        total, mean = p.new_empty(len(p)), p.new_empty(len(p))
        for some in _blocks(p):
            x = widened(logits[some])
            x = x if temperature == 1 else x / temperature
            torch.softmax(x, -1, out=p[some])
            total[some] = x.amax(-1) - p[some].amax(-1).log()  # log of the sum of exp(x)
            mean[some] = torch.linalg.vecdot(p[some], x)
            if mean[some].isnan().any():  # a logit of -inf adds nothing
                mean[some] = (p[some] * x.masked_fill(p[some] == 0, 0.0)).sum(-1)
        logp = logits.gather(1, token[:, None])[:, 0].to(dtype) / temperature - total
        entropy = total - mean
        ctx.save_for_backward(p, token, entropy)
        ctx.set_materialize_grads(False)
        ctx.rest = logits.dtype, temperature
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, None, None]:
        (p, token, entropy), (dtype, temperature) = ctx.saved_tensors, ctx.rest
        of_logp, of_entropy = (None if s is None else s[:, None] / temperature for s in slopes)
        tiny = torch.finfo(p.dtype).tiny
        for some in _blocks(p):  # in place: memory of this size costs as much as what is done in it
            factor = 0.0 if of_logp is None else of_logp[some]
            if of_entropy is not None:  # dH / dx_v = -p_v (log p_v + H)
                log = p[some].clamp(min=tiny).log()
                factor = factor + of_entropy[some] * (log + entropy[some, None])
            p[some].mul_(-factor)
        if of_logp is not None:
            p.scatter_add_(1, token[:, None], of_logp)
        return p.to(dtype), None, None


def _blocks(x: Tensor) -> Iterator[slice]:
    """Rows at a time that a processor's cache holds; elsewhere all at once."""
    size = max(1, CACHED // x.shape[1]) if x.device.type == "cpu" else len(x)
    return (slice(i, i + size) for i in range(0, len(x), size))
