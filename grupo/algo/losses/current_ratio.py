"""Losses whose ratios are taken to the policy at the start of the step."""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires


@component
class RatioToCurrent(Loss):
    """The loss with pi_old = the policy at the start of the step, in the trained context, (N, T).

    Every ratio of a step's first update is 1, also for a rollout that was sampled from another
    prompt or at an earlier step. The loss then has no correction for the sampling policy. PoRo
    (arXiv:2510.09474) trains in this way on rollouts that were sampled with a rule document. For a
    given answer, which no policy sampled, pi_old is the policy's own probability, too.

    Args:
        loss: The loss, whose `batch.old_logp` becomes the signal `logp@current`.

    >>> from grupo.algo.losses import Clip
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> signals = {"logp@current": [[-0.5]]}
    >>> batch = make_batch([0], advantage=[1.0], logp=-3.0, signals=signals)
    >>> pi = perturb_logp(batch, [[2.5]])
    >>> Clip()(pi, batch).tolist(), RatioToCurrent(Clip())(pi, batch).tolist()
    ([[-1.2]], [[-1.0]])
    """

    loss: Loss

    requires = Requires(signals=("logp@current",))

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.loss(pi, with_current_logp(batch))

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, with_current_logp(batch))


def with_current_logp(batch: Batch) -> Batch:
    """The batch with the log-probabilities at the start of the step as `old_logp`."""
    return replace(batch, old_logp=batch.signals["logp@current"])
