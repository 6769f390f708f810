"""Clip-Cov: no gradient for some tokens that cost entropy. Cui et al., 2025, arXiv:2505.22617."""

from grupo.algo.aggregation import hash_uniform, token_mean, top_fraction_mask
from grupo.algo.losses import Clip, CorrectedLoss
from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early, and an entropy bonus is too blunt.",
    verl="loss_mode='clip_cov' (unseeded draw, covariance of the micro-batch, PPO's clip excluded)",
    checked=("golden", "laws", "reference", "run"),
)


@component
class DropHighCovariance:
    """0 on a `drop_fraction` of all actions, drawn from those of covariance in (low, high); 1 elsewhere."""

    drop_fraction: float
    min_covariance: float
    max_covariance: float

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the covariance is about the means of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        cov = logp_advantage_covariance(pi, batch)
        drawn = batch.mask & (cov > self.min_covariance) & (cov < self.max_covariance)
        share = self.drop_fraction * int(batch.mask.sum()) / max(1, int(drawn.sum()))
        drawn[drawn.clone()] = top_fraction_mask(
            hash_uniform(batch.old_logp[drawn]), min(1.0, share)
        )
        return (~drawn).to(batch.old_logp)


def clip_cov(
    group_size: int = 8,
    drop_fraction: float = 2e-4,
    min_covariance: float = 1.0,
    max_covariance: float = 5.0,
    clip_eps: float = 0.2,
) -> Method:
    """PPO's surrogate without `drop_fraction` of the tokens, drawn from those with `min_covariance` < cov < `max_covariance`.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens; at least
    one token is dropped if any qualifies. The draw is by the bits of the old log-probability.
    """
    # 2e-4, 1 and 5 are the released defaults; token mean as in the released scripts.
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), DropHighCovariance(drop_fraction, min_covariance, max_covariance)
    )
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)
