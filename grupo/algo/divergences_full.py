"""Divergences of whole distributions, from log-probabilities (m, V), answered as (m,) in nats.

What neither can do adds nothing; what `logp` can do and the other cannot makes the reverse KL
infinite, as it is.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

LogProbs = Float[Tensor, "m V"]
PerState = Float[Tensor, "m"]


def reverse_kl(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """KL(pi || other) = sum over v of pi (log pi - log other).

    >>> half, most = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    >>> reverse_kl(half, most)
    tensor([0.5108])
    """
    return _kl(logp, other_logp)


def forward_kl(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """KL(other || pi)."""
    return _kl(other_logp, logp)


def jsd(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """The Jensen-Shannon divergence: the mean KL of both from their even mixture.

    >>> half, most = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    >>> jsd(half, most)
    tensor([0.1017])
    """
    never = logp.isneginf() & other_logp.isneginf()  # finite there: its slope is asked for, times 0
    mixture = torch.logaddexp(logp.masked_fill(never, 0), other_logp.masked_fill(never, 0)) - log(2)
    return (_kl(logp, mixture) + _kl(other_logp, mixture)) / 2


def _kl(p: LogProbs, q: LogProbs) -> PerState:
    """KL(p || q); where p is 0 it adds nothing, and nothing flows back."""
    never = p.isneginf()
    gap = p.masked_fill(never, 0.0) - q.masked_fill(never, 0.0)
    return (p.exp() * gap).sum(-1)
