"""Scores of a rollout under the policy, which losses on preferences compare.

A score is a function `(pi, batch) -> (R,)`, differentiable. `grupo.algo.losses.contrastive` has
`mean_logp` and, against the policy that sampled, `rollout_log_ratio`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.advantages.token_table import at_last_token, sum_per_rollout
from grupo.algo.losses.contrastive import mean_logp, mean_per_rollout
from grupo.core.aux_heads import FeatureHead
from grupo.core.batch import Batch, PerRollout, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction
from grupo.core.requires import Requires

Score = Callable[[Signals, Batch], Tensor]
MAX_MEAN_LOGP = -1e-6  # nats; the odds of a probability of 1 are infinite


def rollout_logp(pi: Signals, batch: Batch) -> PerRollout:
    """log pi(y) of each whole rollout y, in nats, (R,).

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0)
    >>> rollout_logp(perturb_logp(batch, [[0.5, 0.0]]), batch).tolist()
    [-1.5]
    """
    return sum_per_rollout(pi.logp, batch)


def log_odds(pi: Signals, batch: Batch) -> PerRollout:
    """log(p / (1 - p)), p = exp(log pi(y) / |y|), (R,).

    Source: ORPO, Hong et al., arXiv:2403.07691, eq. 3.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=log(0.75))
    >>> round(log_odds(perturb_logp(batch, [[0.0]]), batch).item(), 6)  # log(0.75 / 0.25)
    1.098612
    """
    m = mean_logp(pi, batch).clamp(max=MAX_MEAN_LOGP)
    return m - (-torch.expm1(m)).log()


@component
class LogRatio:
    """log pi(y) - log pi_ref(y) of each whole rollout y, in nats, (R,).

    Args:
        model: name of the reference model: "ref", or one of the recipe's auxiliary models.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2], signals={"logp@ref": [[-1.5, -2.0]]})
    >>> LogRatio()(perturb_logp(batch, [[0.0, 0.0]]), batch).tolist()
    [1.5]
    """

    model: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.model}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerRollout:
        return sum_per_rollout(pi.logp - batch.signals[f"logp@{self.model}"], batch)


@component
class MeanLogRatio:
    """(log pi(y) - log pi_ref(y)) / |y| of each rollout y, in nats per token, (R,).

    Args:
        model: name of the reference model: "ref", or one of the recipe's auxiliary models.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2], signals={"logp@ref": [[-1.5, -2.0]]})
    >>> MeanLogRatio()(perturb_logp(batch, [[0.0, 0.0]]), batch).tolist()
    [0.75]
    """

    model: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.model}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerRollout:
        return mean_per_rollout(pi.logp - batch.signals[f"logp@{self.model}"], batch)


@component
class MixedLogRatio:
    """log pi(y) - ref_weight log pi_ref(y) - (1 - ref_weight) log pi_old(y), in nats, (R,).

    The ratio to a geometric mixture of the reference policy and the policy that sampled.
    Source: INPO, Zhang et al., arXiv:2407.00617.

    Args:
        ref_weight: weight of the reference policy, in [0, 1].

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-3.0]]})
    >>> MixedLogRatio(0.25)(perturb_logp(batch, [[0.5]]), batch).tolist()  # -0.5 + 0.75 + 0.75
    [1.0]
    """

    ref_weight: Fraction

    requires = Requires(signals=("logp@ref",))

    def __call__(self, pi: Signals, batch: Batch) -> PerRollout:
        log_ratio = ratios.token_log_ratio(pi, batch)
        to_old = batch.old_logp - batch.signals["logp@ref"]
        return sum_per_rollout(log_ratio + self.ref_weight * to_old, batch)


@component
class HeadAtEnd:
    """Output of a head in the state before the last token of each rollout, (R,).

    Args:
        head: the head.

    >>> from grupo.core.aux_heads import DeepHead
    >>> from grupo.testing.batches import make_batch
    >>> pi = Signals(score=torch.tensor([[1.0, 2.0]]))
    >>> HeadAtEnd(DeepHead("score"))(pi, make_batch(group=[0], length=[2])).tolist()
    [2.0]
    """

    head: FeatureHead

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=(self.head.name,), heads=(self.head,))

    def __call__(self, pi: Signals, batch: Batch) -> PerRollout:
        score: Tensor = pi[self.head.name]
        is_last = at_last_token(batch.reward.new_ones(len(batch.reward)), batch).to(score)
        return sum_per_rollout(score * is_last, batch)
