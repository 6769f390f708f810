"""What was measured of a rollout's actions, as one number: a reward where nobody judges."""

from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component


def ref_log_ratio(batch: Batch) -> PerRollout:
    """k = log pi_old(y) - log pi_ref(y) of the whole rollout y, in nats.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> ref = {"logp@ref": [[-2.0, -1.5]]}
    >>> ref_log_ratio(make_batch(group=[0], length=[2], logp=-1.0, signals=ref)).tolist()
    [1.5]
    """
    return sum_per_rollout(batch.old_logp - batch.signals["logp@ref"], batch)


@component
class SumSignal:
    """Sum over a rollout's actions of the measured `signal`, times `factor`; what came is left.

    "" is the log-probability that actions were taken with.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], signals={"entropy": [[0.5, 1.0]]})
    >>> SumSignal("entropy", -1.0)(batch.reward, batch).tolist()
    [-1.5]
    """

    signal: str = ""
    factor: float = 1.0

    @property
    def required_signals(self) -> frozenset[str]:
        """The signal."""
        return frozenset({self.signal} - {""})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        said = batch.signals[self.signal] if self.signal else batch.old_logp
        return self.factor * sum_per_rollout(said.to(x), batch)


@component
class MeanSignal(SumSignal):
    """Mean over a rollout's actions of the measured `signal`, times `factor`; what came is left.

    "" is the log-probability that actions were taken with; who took none has 0.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], signals={"entropy": [[0.5, 1.0]]})
    >>> MeanSignal("entropy")(batch.reward, batch).tolist()
    [0.75]
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return super().__call__(x, batch) / batch.lengths.clamp(min=1).to(x)
