"""Attention sinks: a score of each head that takes part in the softmax and has no value.

The sink of a head is one more block of keys, whose output is 0 and whose log-sum-exp is the score.
Agarwal et al., 2025, gpt-oss, arXiv:2508.10925; Xiao et al., 2023, arXiv:2309.17453.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Sinks = Float[Tensor, "H"]


def merge_sinks(
    out: Float[Tensor, "M H d"], lse: Float[Tensor, "M H"], sinks: Sinks
) -> tuple[Float[Tensor, "M H d"], Float[Tensor, "M H"]]:
    """Outputs and log-sum-exp of attention with sinks, from those of attention without them.

    >>> out, lse = merge_sinks(torch.ones(1, 1, 1), torch.zeros(1, 1), torch.zeros(1))
    >>> out.item(), round(lse.exp().item(), 4)
    (0.5, 2.0)
    """
    merged = torch.logaddexp(lse, sinks.to(lse))
    return (out * (lse - merged).exp()[..., None]).to(out.dtype), merged


def sinks_gradient(
    grad_out: Float[Tensor, "M H d"],
    out: Float[Tensor, "M H d"],
    lse: Float[Tensor, "M H"],
    sinks: Sinks,
) -> Sinks:
    """The gradient of sinks: minus the sum over tokens of p <grad_out, out>.

    Args:
        grad_out: gradient of the outputs.
        out: outputs with the sinks.
        lse: log-sum-exp with the sinks; p = exp(sink - lse) is the sink's probability.
        sinks: the scores.
    """
    p = (sinks.to(lse) - lse).exp()
    return -(p * (grad_out.to(lse) * out.to(lse)).sum(-1)).sum(0).to(sinks.dtype)


def softmax_with_sinks(
    scores: Float[Tensor, "R K h c"], sinks: Sinks | None
) -> Float[Tensor, "R K h c"]:
    """Probabilities of the keys, beside the sinks if there are any.

    Args:
        scores: of R queries in K groups of h heads, for c keys.
        sinks: of the K * h heads.
    """
    if sinks is None:
        return scores.softmax(-1)
    column = sinks.to(scores).view(1, *scores.shape[1:3], 1).expand(len(scores), -1, -1, -1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1]
