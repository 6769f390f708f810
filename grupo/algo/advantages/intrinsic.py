"""Intrinsic rewards: one number per rollout from signals of its tokens, without a judge."""

from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires


def ref_log_ratio(batch: Batch) -> PerRollout:
    """log pi_old(y) - log pi_ref(y) of each whole rollout y, in nats, (R,).

    >>> from grupo.testing.batches import make_batch
    >>> ref = {"logp@ref": [[-2.0, -1.5]]}
    >>> ref_log_ratio(make_batch(group=[0], length=[2], logp=-1.0, signals=ref)).tolist()
    [1.5]
    """
    return sum_per_rollout(batch.old_logp - batch.signals["logp@ref"], batch)


@component
class SumSignal:
    """factor x sum of a signal over the rollout's tokens, (R,); the incoming advantage is ignored.

    Args:
        signal: name of the signal; "" is `old_logp`, the log-probability of the generated tokens.
        factor: multiplies the sum.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], signals={"entropy": [[0.5, 1.0]]})
    >>> SumSignal("entropy", -1.0)(batch.reward, batch).tolist()
    [-1.5]
    """

    signal: str = ""
    factor: NumberOrSchedule = 1.0

    @property
    def requires(self) -> Requires:
        return Requires(signals=(self.signal,) if self.signal else ())

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        values = batch.signals[self.signal] if self.signal else batch.old_logp
        return self.factor * sum_per_rollout(values.to(x), batch)


@component
class MeanSignal(SumSignal):
    """factor x mean of a signal over the rollout's tokens, (R,); 0 for a rollout without tokens.

    The incoming advantage is ignored.

    Args:
        signal: name of the signal; "" is `old_logp`, the log-probability of the generated tokens.
        factor: multiplies the mean.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], signals={"entropy": [[0.5, 1.0]]})
    >>> MeanSignal("entropy")(batch.reward, batch).tolist()
    [0.75]
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return super().__call__(x, batch) / batch.lengths.clamp(min=1).to(x)
