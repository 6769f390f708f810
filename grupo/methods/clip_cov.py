"""Clip-Cov: no gradient for some tokens that cost entropy. Cui et al., 2025, arXiv:2505.22617."""

from grupo.algo.aggregation import lot, token_mean, top
from grupo.algo.losses import Clip, Corrected
from grupo.algo.losses.entropy_aware import covariance
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early, and an entropy bonus is too blunt.",
    verl="loss_mode='clip_cov' (unseeded draw, covariance of the micro-batch, PPO's clip excluded)",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class DropCovariant:
    """0 on a `share` of all actions, drawn from those of covariance in (low, high); 1 elsewhere."""

    share: float
    low: float
    high: float

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def reads_whole_batch(self) -> bool:
        """Yes: the covariance is about the means of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        cov = covariance(pi, batch)
        drawn = batch.mask & (cov > self.low) & (cov < self.high)
        share = self.share * int(batch.mask.sum()) / max(1, int(drawn.sum()))
        drawn[drawn.clone()] = top(lot(batch.old_logp[drawn]), min(1.0, share))
        return (~drawn).to(batch.old_logp)


def clip_cov(
    group: int = 8, share: float = 2e-4, low: float = 1.0, high: float = 5.0, clip: float = 0.2
) -> Method:
    """PPO's surrogate without `share` of the tokens, drawn from those with `low` < cov < `high`.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; at least
    one token is dropped if any qualifies. The draw is by the bits of the old log-probability.
    """
    # 2e-4, 1 and 5 are the released defaults; token mean as in the released scripts.
    loss = Corrected(Clip(clip, clip), DropCovariant(share, low, high))
    return Method(sample=Independent(group), loss=loss, weigh=token_mean)
