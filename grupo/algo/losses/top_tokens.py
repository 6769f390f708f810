"""Metrics of the likeliest tokens, by which an over-optimised policy can be recognised."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires

TOP_SIGNALS = ("entropy_top10", "mass_top10")


@component
class TopTokenMetrics(Loss):
    """The loss 0 that logs entropy and probability of the 10 likeliest tokens, (N, T).

    The metrics are "policy/entropy_top10", in nats, and "policy/mass_top10", means over actions.
    `grupo doctor` reads them.
    Source: Shi et al., arXiv:2410.11677.

    >>> TopTokenMetrics().requires
    Requires(recomputed_signals=['entropy_top10', 'mass_top10'])
    """

    requires = Requires(recomputed_signals=TOP_SIGNALS)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.zeros_like(pi.logp)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/{name}": pi[name] for name in TOP_SIGNALS}
