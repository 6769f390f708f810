"""COPO: groups of equal rewards learn from other groups. Han et al., 2025, arXiv:2508.04138."""

from math import log

import torch
from torch import Tensor

from grupo.algo.losses import Clip, Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="COPO: Consistency-Aware Policy Optimization",
    use="Most groups are all correct or all incorrect and have no advantage of their own.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "run"),
    catalogue=("copo",),
)


def answer_entropy(batch: Batch) -> Tensor:
    """H = -sum over distinct answers of f log2 f, (R,), f their shares of the group, in bits.

    Equal answers have the same value of the reward term "cluster".
    """
    return group_ops.entropy(batch.reward_terms["cluster"], batch.group) / log(2)


def between_group_advantage(x: Tensor, batch: Batch) -> Tensor:
    """(R - mean R) / std R over groups, (R,), with R = mean(x) (1 - (1 - 1/G) H / log2 G)."""
    G = group_ops.count(x, batch.group)
    consistency = 1 - (1 - 1 / G) * answer_entropy(batch) / G.clamp(min=2).log2()
    R = group_ops.mean(x, batch.group) * consistency
    num_groups = (1 / G).sum()
    centred = R - (R / G).sum() / num_groups
    variance = (centred**2 / G).sum() / (num_groups - 1).clamp(min=1)
    return centred / (variance.sqrt() + 1e-6)


@component
class BlendedClip(Loss):
    """w clip(A) + (1 - w) clip(A between groups), (N, T), w = sigmoid(k (H - b)).

    k = entropy_slope, b = entropy_midpoint; w is 0 in groups of equal rewards.

    Args:
        surrogate: PPO's clipped loss.
        entropy_slope: k, per bit.
        entropy_midpoint: b, in bits.
    """

    surrogate: Clip
    entropy_slope: Number
    entropy_midpoint: Number

    requires = Requires(reward_terms=("cluster",), whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        differ = group_ops.var(batch.reward, batch.group) > 1e-12
        gate = torch.sigmoid(self.entropy_slope * (answer_entropy(batch) - self.entropy_midpoint))
        w = broadcast_to_tokens(gate * differ, batch).to(pi.logp)
        within = self.surrogate(pi, batch)
        between = self.surrogate(pi, batch.with_advantage(between_group_advantage))
        return w * within + (1 - w) * between


def copo(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    entropy_slope: NonNegative = 1.0,
    entropy_midpoint: NonNegative = 0.5,
) -> Method:
    """Two clipped losses, of GRPO's A and of A between groups, mixed by the entropy of answers.

    Reward term: "cluster", the same for equal answers.

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        entropy_slope: slope of the mixing weight, per bit.
        entropy_midpoint: entropy at which both losses weigh the same, in bits.
    """
    # The authors' code, except that groups of equal rewards have the second loss alone.
    return Method(
        sampler=GroupSampler(group_size),
        loss=BlendedClip(Clip(clip_eps, clip_eps), entropy_slope, entropy_midpoint),
    )
