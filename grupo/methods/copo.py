"""COPO: groups of equal rewards learn from other groups. Han et al., 2025, arXiv:2508.04138."""

from math import log

import torch
from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator, Center, ScaleByStd, chain
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def copo(
    group_size: PositiveInt = 6,
    clip_eps: NonNegative = 0.2,
    entropy_slope: NonNegative = 5.0,
    entropy_midpoint: NonNegative = 1.0,
    consistency_coef: Fraction = 0.0,
    minibatches: PositiveInt = 16,
) -> Method:
    """Two clipped losses, of GRPO's A and of A between groups, mixed by the entropy of answers.

    Reward term: "cluster", the same for equal answers.

    Args:
        group_size: rollouts per task (run_copo.sh: 6).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        entropy_slope: slope of the mixing weight, per bit (run_copo.sh: 5).
        entropy_midpoint: entropy at which both losses weigh the same, in bits (run_copo.sh: 1).
        consistency_coef: weight of the consistency of a group's answers in its reward (paper: 1,
            run_copo.sh: 0).
        minibatches: optimizer updates per rollout step (run_copo.sh: 16).
    """
    within = chain(Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=BetweenGroups(consistency_coef),
        loss=BlendedClip(Clip(clip_eps, clip_eps), within, entropy_slope, entropy_midpoint),
        updates=Updates(minibatches=minibatches),
    )


def answer_entropy(batch: Batch) -> Tensor:
    """H = -sum over distinct answers of f log2 f, (R,), f their shares of the group, in bits.

    Equal answers have the same value of the reward term "cluster".
    """
    return group_ops.entropy(batch.reward_terms["cluster"], batch.group) / log(2)


@component
class BetweenGroups:
    """(R - mean R) / std R over groups, (R,), R = mean(x) (1 - c (1 - 1/G) H / log2 G).

    c = consistency_coef.

    Args:
        consistency_coef: weight of the entropy of the group's answers; 0 ignores it.
    """

    consistency_coef: NumberOrSchedule = 0.0

    requires = Requires(reward_terms=("cluster",), whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        G = group_ops.count(x, batch.group)
        spread = (1 - 1 / G) * answer_entropy(batch) / G.clamp(min=2).log2()
        R = group_ops.mean(x, batch.group) * (1 - self.consistency_coef * spread)
        num_groups = (1 / G).sum()
        centred = R - (R / G).sum() / num_groups
        variance = (centred**2 / G).sum() / (num_groups - 1).clamp(min=1)
        return centred / (variance.sqrt() + 1e-6)


@component
class BlendedClip(Loss):
    """w clip(A within the group) + (1 - w) clip(A), (N, T), w = sigmoid(k (H - b)) 1[r != 0].

    k = entropy_slope, b = entropy_midpoint. A is the advantage between groups, which is estimated
    on the whole batch. That within a group is estimated here: a minibatch has whole groups. A
    rollout without reward learns from the other groups alone.

    Args:
        surrogate: PPO's clipped loss.
        within: advantage within a group.
        entropy_slope: k, per bit.
        entropy_midpoint: b, in bits.
    """

    surrogate: Clip
    within: AdvantageEstimator
    entropy_slope: NumberOrSchedule
    entropy_midpoint: NumberOrSchedule

    # a reward of exactly 0 means that the answer is incorrect
    requires = Requires(reward_terms=("cluster",), bounded_rewards=("reward",))

    def weight(self, batch: Batch) -> Tensor:
        """w of each rollout, (R,)."""
        gate = torch.sigmoid(self.entropy_slope * (answer_entropy(batch) - self.entropy_midpoint))
        return gate * (batch.reward != 0)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        w = broadcast_to_tokens(self.weight(batch), batch).to(pi.logp)
        within = self.surrogate(pi, batch.with_advantage(self.within))
        return w * within + (1 - w) * self.surrogate(pi, batch)


PAPER = Paper(
    title="COPO: Consistency-Aware Policy Optimization",
    use="Most groups are all correct or all incorrect and have no advantage of their own.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "run"),
    catalogue=("copo",),
    source=Source(
        "code",
        "hijih/copo-code, verl/run_copo.sh, README.md and compute_policy_loss_with_global of "
        "verl/trainer/ppo/core_algos.py ('soft with zero')",
    ),
    plan="run_copo.sh: train batch 512, minibatch 32 prompts: 16 updates per step",
    missing=("The dual clip at 3 of the released losses.",),
    deviations=(
        "The consistency factor is off, as in run_copo.sh; the paper has it.",
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit="loss, gate of each rollout and constants compared with the released code",
    shown=("docs/claims.md#modes",),
)
