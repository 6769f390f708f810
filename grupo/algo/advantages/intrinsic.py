"""What was measured of a rollout's actions, as one number: a reward where nobody judges."""

from torch import Tensor

from grupo.algo.advantages.token_table import total
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import piece


def drift(batch: Batch) -> PerRollout:
    """k = log pi_old(y) - log pi_ref(y) of the whole rollout y, in nats.

    >>> from grupo.testing.batches import batch_of
    >>> ref = {"logp@ref": [[-2.0, -1.5]]}
    >>> drift(batch_of(group=[0], length=[2], logp=-1.0, seen=ref)).tolist()
    [1.5]
    """
    return total(batch.old_logp - batch.seen["logp@ref"], batch)


@piece
class SumOf:
    """Sum over a rollout's actions of the measured `signal`, times `factor`; what came is left.

    "" is the log-probability that actions were taken with.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], seen={"entropy": [[0.5, 1.0]]})
    >>> SumOf("entropy", -1.0)(batch.reward, batch).tolist()
    [-1.5]
    """

    signal: str = ""
    factor: float = 1.0

    @property
    def needs(self) -> frozenset[str]:
        """The signal."""
        return frozenset({self.signal} - {""})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        said = batch.seen[self.signal] if self.signal else batch.old_logp
        return self.factor * total(said.to(x), batch)


@piece
class MeanOf(SumOf):
    """Mean over a rollout's actions of the measured `signal`, times `factor`; what came is left.

    "" is the log-probability that actions were taken with; who took none has 0.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], seen={"entropy": [[0.5, 1.0]]})
    >>> MeanOf("entropy")(batch.reward, batch).tolist()
    [0.75]
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return super().__call__(x, batch) / batch.lengths.clamp(min=1).to(x)
