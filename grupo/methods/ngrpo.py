"""NGRPO: a virtual success in every group. Nan et al., 2025, arXiv:2509.18851."""

from collections.abc import Sequence
from math import inf

from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ngrpo(
    group_size: PositiveInt = 8,
    max_reward: NumberOrSchedule = 1.0,
    clip_low: NonNegative = 0.16,
    clip_high: NonNegative = 0.24,
) -> Method:
    """A_i = (r_i - mean(S)) / std(S), S the group's rewards and one virtual max_reward.

    A group without a success has A = -1 / sqrt(G + 1); solved groups are dropped. loss = mean over
    tokens of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A), without KL.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        max_reward: largest possible reward.
        clip_low: ratios are clipped below at 1 - clip_low (authors' script: 0.16).
        clip_high: ratios are clipped above at 1 + clip_high (authors' script: 0.24).
    """
    method = Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )
    return method.replace(
        filter=DropSolvedGroups(max_reward), advantage=StandardiseWithSuccess(max_reward)
    )


@component
class StandardiseWithSuccess:
    """(x - mean) / (std + eps) over the group and one more rollout of reward max_reward.

    Args:
        max_reward: largest possible reward.
        eps: added to the denominator.
    """

    max_reward: NumberOrSchedule = 1.0
    eps: NumberOrSchedule = 1e-6

    @property
    def requires(self) -> Requires:
        is_constant = isinstance(self.max_reward, int | float)
        return Requires(reward_range=(-inf, self.max_reward) if is_constant else None)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        n = group_ops.count(x, batch.group)
        m = (group_ops.sum(x, batch.group) + self.max_reward) / (n + 1)
        var = (group_ops.sum((x - m) ** 2, batch.group) + (self.max_reward - m) ** 2) / n
        return (x - m) / (var.sqrt() + self.eps)


@component
class DropSolvedGroups:
    """Keeps groups in which some rollout has a reward below max_reward.

    Args:
        max_reward: largest possible reward.
    """

    max_reward: NumberOrSchedule = 1.0

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if any(r < self.max_reward for r in group.rewards)]


PAPER = Paper(
    title="NGRPO: Negative-enhanced Group Relative Policy Optimization",
    use="Many groups have no correct answer and should not be discarded.",
    tags=("advantage", "clipping"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("ngrpo",),
    source=Source(
        "code",
        "nangongrui-ngr/NGRPO: compute_ngrpo_outcome_advantage in "
        "verl/trainer/ppo/core_algos.py, train_scripts/train_qwen2.5-math-7b_ngrpo.sh",
    ),
    plan="train_qwen2.5-math-7b_ngrpo.sh: 1,024 prompts per step in minibatches of 256, 4 updates",
    missing=(
        "More than one virtual reward (add_max_reward_num).",
        "The framework's entropy bonus of 0.001, which the script leaves on.",
        "Further generation after solved groups are dropped, until a step has 8,192 rollouts.",
    ),
    deviations=(
        "The mean is over the tokens of a minibatch, in the code of a micro-batch of at most "
        "36,000 tokens.",
        "A lone rollout is standardised with the virtual one: the code gives it its reward.",
        "A step trains on whole groups of its own. The code trains on surplus rollouts one step "
        "later, with the log-probabilities of their own step, and cuts the batch by rows after "
        "balancing, so a group may be split (ray_trainer.py:1082-1084, 1276-1283).",
    ),
    audit=(
        "statistics, eps, clips, filter, group size and plan compared with the code and the"
        " run script"
    ),
    shown=("docs/claims.md#difficulty",),
)
