"""Importance ratios between the policy being trained and the one that sampled, 1 where masked.

Three levels, by the span of actions whose log-ratios are averaged: one action, one turn, one row;
and the row's product, which averages nothing.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component

MAX_LOG_RATIO = 20.0  # nats: a product's logarithm is held within it, for e^89 overflows float32


def token_log_ratio(pi: Signals, batch: Batch) -> PerAction:
    """log pi(a|s) - log pi_old(a|s), 0 where masked, (N, T)."""
    return (pi.logp - batch.old_logp).masked_fill(~batch.mask, 0.0)


def token(pi: Signals, batch: Batch) -> PerAction:
    """Pi(a|s) / pi_old(a|s), (N, T)."""
    return token_log_ratio(pi, batch).exp()


def sequence(pi: Signals, batch: Batch) -> Tensor:
    """Geometric mean of the row's token ratios, (N, 1): exp(mean log r).

    GSPO (arXiv:2507.18071).
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


def product(pi: Signals, batch: Batch) -> Tensor:
    """Product of the row's token ratios, (N, 1): pi(row) / pi_old(row), within e^-20 and e^20."""
    return (
        token_log_ratio(pi, batch).sum(1, keepdim=True).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    )


@component
class SequenceTokenRatio:
    """The value of `sequence_clip`, (N, T), and the gradient of each token's own ratio: sg(s) r / sg(r).

    GSPO-token (arXiv:2507.18071).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], length=[2])
    >>> SequenceTokenRatio()(moved(batch, [[0.4, -0.4]]), batch).tolist()
    [[1.0, 1.0]]
    """

    @property
    def has_stop_gradient(self) -> bool:
        """Yes: what one token's ratio does to another's value is left out."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = token_log_ratio(pi, batch)
        return sequence(pi, batch).detach() * (r - r.detach()).exp()


@component
class CappedRatio:
    """A ratio, at most `limit`.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0])
    >>> CappedRatio(3.0)(moved(batch, [[2.0], [0.0]]), batch).tolist()
    [[3.0], [1.0]]
    """

    cap: float
    ratio: Callable[[Signals, Batch], Tensor] = token

    @property
    def required_signals(self) -> frozenset[str]:
        """What the ratio needs."""
        return getattr(self.ratio, "required_signals", frozenset())

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        return self.ratio(pi, batch).clamp(max=self.cap)


@component
class RatioTo:
    """The probability of each action now, over the one that `other` gave it, (N, T).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@sampler": [[-1.5]]})
    >>> RatioTo("sampler")(moved(batch, [[-0.5]]), batch).tolist()
    [[1.0]]
    """

    other_policy: str = "sampler"

    @property
    def required_signals(self) -> frozenset[str]:
        """What the other said of the actions."""
        return frozenset({f"logp@{self.other_policy}"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = pi.logp - batch.signals[f"logp@{self.other_policy}"]
        return d.masked_fill(~batch.mask, 0.0).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
