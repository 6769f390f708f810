"""Exact divergences over the whole vocabulary, from log-probabilities (m, V) to (m,), in nats.

Entries that both distributions exclude contribute 0. An entry that pi can generate and the other
cannot makes the reverse KL infinite.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

LogProbs = Float[Tensor, "m V"]
PerState = Float[Tensor, "m"]


def reverse_kl(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """KL(pi || other) = sum over v of pi(v) (log pi(v) - log other(v)).

    >>> uniform, skewed = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    >>> reverse_kl(uniform, skewed)
    tensor([0.5108])
    """
    return _kl(logp, other_logp)


def forward_kl(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """KL(other || pi) = sum over v of other(v) (log other(v) - log pi(v))."""
    return _kl(other_logp, logp)


def jsd(logp: LogProbs, other_logp: LogProbs) -> PerState:
    """Jensen-Shannon divergence: (KL(pi || m) + KL(other || m)) / 2 with m = (pi + other) / 2.

    >>> uniform, skewed = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    >>> jsd(uniform, skewed)
    tensor([0.1017])
    """
    # where both are -inf: a finite value, because autograd multiplies its slope by 0
    excluded = logp.isneginf() & other_logp.isneginf()
    total = torch.logaddexp(logp.masked_fill(excluded, 0), other_logp.masked_fill(excluded, 0))
    mixture = total - log(2)
    return (_kl(logp, mixture) + _kl(other_logp, mixture)) / 2


def _kl(p: LogProbs, q: LogProbs) -> PerState:
    """KL(p || q); entries with p = 0 contribute neither value nor gradient."""
    excluded = p.isneginf()
    log_ratio = p.masked_fill(excluded, 0.0) - q.masked_fill(excluded, 0.0)
    return (p.exp() * log_ratio).sum(-1)
