"""LOOP: PPO with the baseline of the other rollouts. Chen et al., 2025, arXiv:2502.01600."""

import torch

from grupo.algo.advantages import Center, chain
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def loop(
    group_size: PositiveInt = 6, clip_eps: NonNegative = 0.1, min_advantage: NonNegative = 0.01
) -> Method:
    """loss = mean over rollouts of mean over tokens of -min(r A, clip(r, 1 / c, c) A).

    c = 1 + clip_eps, A_i = R_i - mean of the other R_j, and A_i = 0 where |A_i| < min_advantage.
    All rollouts of the minibatch count in the mean, also those with A = 0.

    A step has 16 updates: 2 epochs of 8 minibatches.

    Args:
        group_size: rollouts per task (release: 6).
        clip_eps: r is clipped to [1 / (1 + clip_eps), 1 + clip_eps] (release: 0.1).
        min_advantage: smallest |A| of a rollout that is trained on (release: 0.01).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(group_ops.leave_one_out_mean), DropSmall(min_advantage)),
        loss=Clip(1 - 1 / (1 + clip_eps), clip_eps),
        aggregation=rollout_mean,
        updates=Updates(epochs=2, minibatches=8),
    )


@component
class DropSmall:
    """x, or 0 where |x| < `min_size`, (R,).

    Args:
        min_size: smallest absolute value that is kept.

    >>> from grupo.testing.batches import make_batch
    >>> DropSmall(0.01)(torch.tensor([0.5, -0.005]), make_batch(group=[0, 0])).tolist()
    [0.5, 0.0]
    """

    min_size: NonNegative

    def __call__(self, x: PerRollout, batch: Batch) -> PerRollout:
        return torch.where(x.abs() < self.min_size, torch.zeros_like(x), x)


PAPER = Paper(
    title="Reinforcement Learning for Long-Horizon Interactive LLM Agents",
    use="Long rollouts with tools, several updates a step, one copy of the weights.",
    tags=("advantage", "clipping", "agents"),
    checked=("golden", "properties", "run"),
    catalogue=("loop",),
    source=Source(
        "code",
        "apple/ml-loop, phi_agents/rl/train.py, phi_agents/rl/conf/rl/params/default.yaml and the"
        " run command of README.md",
    ),
    plan="default.yaml: 40 tasks of 6 rollouts, minibatches of 32 rollouts, 2 epochs: at most 16"
    " updates per step",
    missing=(
        "The end of a step's updates where the measured KL divergence exceeds 20.",
        "The end of slow rollouts once 0.9 of all and 0.75 of a task's are finished (README.md).",
        "The cut of longer rollouts to their first 32,000 tokens in learning (README.md).",
    ),
    deviations=(
        "A minibatch has whole groups: 8 of 5 groups, 30 rollouts, where the release has 32.",
        "The release removes dropped rollouts before it forms minibatches of 32, and divides each"
        " by 32. Here they stay in their minibatch with a loss of 0: a kept rollout has the same"
        " constant weight, and the number of updates does not depend on how many are kept.",
        "The release rounds the number of kept rollouts up to a multiple of its devices, 4 in"
        " README.md: up to 3 with a smaller |A| stay in the update.",
    ),
    audit="baseline, threshold, clip, means over tokens and rollouts (_surrogate_loss,"
    " loss_div_factor), filter and plan compared with train.py and default.yaml",
    shown=("docs/claims.md#turns",),
)
