"""Importance ratios between the trained policy pi and the policy pi_old that sampled.

The ratios differ by the span over which log-ratios are averaged: a token, a turn, or a sequence.
`product` sums the log-ratios of a sequence instead. A sequence is a row, or all rows of a rollout
that a chat template forked: each of these rows has the ratio of the rollout. Masked actions have
the ratio 1.

A ratio is a function `(pi, batch) -> (N, T) or (N, 1)`: `pi` holds the current log-probabilities
(differentiable), `batch.old_logp` those of pi_old.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.token_level import SEQUENCES, Level, per_action, row_mean, row_sum
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule
from grupo.core.requires import Requires, declares
from grupo.util.ordered_sums import select_by_index, sum_by_index

MAX_LOG_RATIO = 20.0  # nats; bounds the logarithm of products, because float32 overflows at e^89


def token_log_ratio(pi: Signals, batch: Batch) -> PerAction:
    """log pi(a|s) - log pi_old(a|s) per token, in nats, 0 where masked, (N, T)."""
    return (pi.logp - batch.old_logp).masked_fill(~batch.mask, 0.0)


def token(pi: Signals, batch: Batch) -> PerAction:
    """Per-token ratio r = pi(a|s) / pi_old(a|s), (N, T): the ratio of PPO and GRPO."""
    return token_log_ratio(pi, batch).exp()


@declares(SEQUENCES)
def sequence(pi: Signals, batch: Batch) -> Tensor:
    """Sequence ratio s = exp(mean over the sequence's tokens of log r), (N, 1): a geometric mean.

    Source: GSPO (arXiv:2507.18071).
    """
    return row_mean(token_log_ratio(pi, batch), batch).exp()


def turn(pi: Signals, batch: Batch) -> PerAction:
    """Turn ratio: geometric mean of the token ratios of the same turn in the row, (N, T)."""
    log_ratio = token_log_ratio(pi, batch)
    num_turns = int(batch.turn.max()) + 1 if batch.turn.numel() else 0
    row = torch.arange(len(log_ratio), device=log_ratio.device)[:, None]
    index = (row * num_turns + batch.turn).flatten()
    size = len(log_ratio) * num_turns
    total = sum_by_index(log_ratio.flatten(), index, size)
    count = sum_by_index(batch.mask.to(log_ratio).flatten(), index, size)
    mean = select_by_index(total / count.clamp(min=1), index).view_as(log_ratio)
    return mean.exp().masked_fill(~batch.mask, 1.0)


@declares(SEQUENCES)
def product(pi: Signals, batch: Batch) -> Tensor:
    """Ratio of a whole sequence: the product of its token ratios, in [e^-20, e^20], (N, 1)."""
    log_ratio = row_sum(token_log_ratio(pi, batch), batch)
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


@component
class SequenceTokenRatio:
    """sg(s) r / sg(r): the value of the sequence ratio s, the gradient of each token's ratio r.

    sg is stop-gradient. The result is (N, T). Source: GSPO-token (arXiv:2507.18071).

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2])
    >>> SequenceTokenRatio()(perturb_logp(batch, [[0.4, -0.4]]), batch).tolist()
    [[1.0, 1.0]]
    """

    # the effect of one token's ratio on another token's value has no gradient
    requires = Requires(surrogate_gradient=True, coupled_sequences=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        log_ratio = token_log_ratio(pi, batch)
        return sequence(pi, batch).detach() * (log_ratio - log_ratio.detach()).exp()


@component
class CappedRatio:
    """min(r, cap): a ratio truncated from above.

    Args:
        cap: largest value of the ratio.
        ratio: the ratio to truncate, per token by default.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0])
    >>> CappedRatio(3.0)(perturb_logp(batch, [[2.0], [0.0]]), batch).tolist()
    [[3.0], [1.0]]
    """

    cap: NonNegative
    ratio: Callable[[Signals, Batch], Tensor] = token

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        return self.ratio(pi, batch).clamp(max=self.cap)


@component
class ClippedRatio:
    """clip(r, 1 - clip_low, 1 + clip_high): a token's ratio bounded on both sides, (N, T).

    Args:
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0])
    >>> ClippedRatio(0.5, 2.0)(perturb_logp(batch, [[2.0], [-2.0]]), batch).tolist()
    [[3.0], [0.5]]
    """

    clip_low: NumberOrSchedule
    clip_high: NumberOrSchedule

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return token(pi, batch).clamp(1 - self.clip_low, 1 + self.clip_high)


@component
class RatioTo:
    """Ratio pi(a|s) / pi_other(a|s) to another policy, in [e^-20, e^20], (N, T) or (N, 1).

    Args:
        other_policy: name of the policy whose `logp@<name>` was measured: "sampler" (the inference
            engine), "ref", or a teacher.
        level: span of the log-ratio, a function of `grupo.algo.token_level`: per token by default,
            `row_sum` for the product of a row's ratios, `row_mean` for their geometric mean.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@sampler": [[-1.5]]})
    >>> RatioTo("sampler")(perturb_logp(batch, [[-0.5]]), batch).tolist()
    [[1.0]]
    """

    other_policy: str = "sampler"
    level: Level = per_action

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.other_policy}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        log_ratio = pi.logp - batch.signals[f"logp@{self.other_policy}"]
        log_ratio = self.level(log_ratio.masked_fill(~batch.mask, 0.0), batch)
        return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
