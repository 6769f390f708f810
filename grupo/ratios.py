"""Importance ratios between the policy being trained and the one that sampled, 1 where masked.

Three levels, by the span of actions whose log-ratios are averaged: one action, one turn, one row.
"""

import torch
from torch import Tensor

from grupo.batch import Batch, PerAction, Signals


def token_log_ratio(pi: Signals, batch: Batch) -> PerAction:
    """log pi(a|s) - log pi_old(a|s), 0 where masked, (N, T)."""
    return (pi.logp - batch.old_logp).masked_fill(~batch.mask, 0.0)


def token(pi: Signals, batch: Batch) -> PerAction:
    """Pi(a|s) / pi_old(a|s), (N, T)."""
    return token_log_ratio(pi, batch).exp()


def sequence(pi: Signals, batch: Batch) -> Tensor:
    """Geometric mean of the row's token ratios, (N, 1): exp(mean log r).

    GSPO (arXiv:2507.18071), eq. 7.
    """
    length = batch.mask.sum(1, keepdim=True).clamp(min=1)
    return (token_log_ratio(pi, batch).sum(1, keepdim=True) / length).exp()


def turn(pi: Signals, batch: Batch) -> PerAction:
    """Geometric mean of the token ratios of the action's own turn, (N, T)."""
    log_ratio = token_log_ratio(pi, batch)
    turns = int(batch.turn.max()) + 1
    shape = (len(log_ratio), turns)
    total = log_ratio.new_zeros(shape).scatter_add(1, batch.turn, log_ratio)
    count = log_ratio.new_zeros(shape).scatter_add(1, batch.turn, batch.mask.to(log_ratio))
    return (
        torch.gather(total / count.clamp(min=1), 1, batch.turn).exp().masked_fill(~batch.mask, 1.0)
    )
