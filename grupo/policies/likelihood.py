"""Log-probability and entropy from logits in one pass, and back with nothing worked out again."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


def likelihood(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m"], temperature: float = 1.0
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Of each token its log-probability, and the entropy of what it is drawn from, in nats.

    The same as by `log_softmax`, with one tensor of the size of the logits kept instead of five.
    """
    return _Likelihood.apply(logits, token, temperature)  # pyright: ignore


def widened(x: Tensor) -> Tensor:
    """In float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _Likelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, token: Tensor, temperature: float) -> Any:
        x = widened(logits)
        x = x if temperature == 1 else x / temperature
        p = x.softmax(-1)
        total = x.amax(-1) - p.amax(-1).log()  # log of the sum of exp(x)
        logp = x.gather(1, token[:, None])[:, 0] - total
        entropy = total - torch.linalg.vecdot(p, x)
        if entropy.isnan().any():  # a logit of -inf adds nothing
            entropy = total - (p * x.masked_fill(p == 0, 0.0)).sum(-1)
        ctx.save_for_backward(p, token, entropy)
        ctx.set_materialize_grads(False)
        ctx.rest = logits.dtype, temperature
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, None, None]:
        (p, token, entropy), (dtype, temperature) = ctx.saved_tensors, ctx.rest
        of_logp, of_entropy = slopes
        toward = torch.zeros_like(p) if of_logp is None else p * -of_logp[:, None]
        if of_logp is not None:
            toward.scatter_add_(1, token[:, None], of_logp[:, None])
        if of_entropy is not None:  # dH / dx_v = -p_v (log p_v + H)
            tiny = torch.finfo(p.dtype).tiny
            toward -= of_entropy[:, None] * p * (p.clamp(min=tiny).log() + entropy[:, None])
        return (toward / temperature if temperature != 1 else toward).to(dtype), None, None
