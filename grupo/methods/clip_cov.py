"""Clip-Cov: drop some tokens that reduce entropy the most. Cui et al., 2025, arXiv:2505.22617."""

from grupo.algo.aggregation import hash_uniform, token_mean, top_fraction_mask
from grupo.algo.losses import Clip, CorrectedLoss
from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def clip_cov(
    group_size: PositiveInt = 8,
    drop_fraction: Fraction = 2e-4,
    min_covariance: NonNegative = 1.0,
    max_covariance: NonNegative = 5.0,
    clip_eps: NonNegative = 1.0,
) -> Method:
    """PPO's loss without a fraction of the tokens, drawn from those of high covariance.

    cov = (log pi - mean log pi) (A - mean A), means over the minibatch's tokens. At least one token
    is dropped if any is in the range. The draw uses the bits of the old log-probability.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task.
        drop_fraction: fraction of all tokens that are dropped (released default: 2e-4).
        min_covariance: lower end of the range (released default: 1).
        max_covariance: upper end of the range (released default: 5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (released scripts: 1, so that
            covariance alone bounds the update from below).
    """
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), DropHighCovariance(drop_fraction, min_covariance, max_covariance)
    )
    return Method(
        sampler=GroupSampler(group_size),
        loss=loss,
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


@component
class DropHighCovariance:
    """Weight 0 for a fraction of all tokens, drawn from those in a range of covariance; else 1.

    Args:
        drop_fraction: fraction of the minibatch's tokens that are dropped.
        min_covariance: lower end of the range, exclusive.
        max_covariance: upper end of the range, exclusive.
    """

    drop_fraction: Fraction
    min_covariance: NumberOrSchedule
    max_covariance: NumberOrSchedule

    # the covariance uses means of the minibatch
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        cov = logp_advantage_covariance(pi, batch)
        dropped = batch.mask & (cov > self.min_covariance) & (cov < self.max_covariance)
        fraction = self.drop_fraction * int(batch.mask.sum()) / max(1, int(dropped.sum()))
        dropped[dropped.clone()] = top_fraction_mask(
            hash_uniform(batch.old_logp[dropped]), min(1.0, fraction)
        )
        return (~dropped).to(batch.old_logp)


PAPER = Paper(
    title="The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    use="Entropy collapses early, and an entropy bonus is too coarse.",
    tags=("entropy", "clipping", "filtering"),
    verl="loss_mode='clip_cov' (unseeded draw, covariance of the micro-batch, PPO's clip excluded)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "PRIME-RL/Entropy-Mechanism-of-RL, recipe/dapo/7b_clip_cov.sh and "
        "verl/trainer/ppo/core_algos.py",
    ),
    plan="recipe/dapo/7b_clip_cov.sh: train batch 256, minibatch 32 prompts: 8 updates per step",
    missing=(
        (
            "Dynamic sampling of the scripts: groups of equal accuracy are replaced from up to 10 "
            "generation batches."
        ),
    ),
    deviations=(
        (
            "The draw uses the bits of the old log-probability, in the release the global random "
            "generator."
        ),
        "ceil(n share) tokens are dropped, in the release max(1, floor(n share)).",
        (
            "The covariance is that of the minibatch, in the release of the micro-batch, where "
            "tokens that PPO's clip stops are left out."
        ),
        "The mean is over the tokens of a minibatch, in the release of a micro-batch.",
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "loss, constants, clips and batch sizes compared with compute_policy_loss_clip_cov and the "
        "scripts for 7B and 32B; arithmetic with verl 0.9.1"
    ),
    shown=("docs/claims.md#reuse",),
)
