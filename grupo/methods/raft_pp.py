"""RAFT++: trains on correct answers alone, with a clip. Xiong et al., 2025, arXiv:2504.11343."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def raft_pp(
    group_size: PositiveInt = 4, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.2
) -> Method:
    """A = 1 for correct answers; the others are dropped before the update (eq. 6).

    loss = mean over correct answers of mean over tokens of -min(R, clip(R, 1 - clip_low, 1 +
    clip_high)).

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task (paper: 4).
        clip_low: ratios are clipped below at 1 - clip_low (paper: 0.2).
        clip_high: ratios are clipped above at 1 + clip_high (paper: 0.2; 0.28 keeps the entropy
            up).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_top_reward,
        advantage=constant_one,
        loss=Clip(clip_low, clip_high),
        updates=Updates(minibatches=4),
    )


def keep_top_reward(groups: Sequence[Group]) -> Sequence[Group]:
    """Keeps the rollouts with the greatest reward of each group, if that is above 0."""
    best = [
        replace(group, rollouts=tuple(r for r in group.rollouts if r.reward == max(group.rewards)))
        for group in groups
        if max(group.rewards, default=0.0) > 0
    ]
    return [group for group in best if group.rollouts]


def constant_one(x: Tensor, batch: Batch) -> Tensor:
    """Advantage 1 for every rollout."""
    return torch.ones_like(x)


PAPER = Paper(
    title="A Minimalist Approach to LLM Reasoning: from Rejection Sampling to Reinforce",
    use="The first hundred steps matter, or a baseline that is simple to implement.",
    tags=("filtering", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "RLHFlow/Minimal-RL, scripts/run_raftpp.sh and verl/trainer/ppo/core_algos.py; eq. 6",
    ),
    plan="run_raftpp.sh: train batch 1024, minibatch 256: 4 updates per step",
    missing=(
        (
            "The KL loss of 0.001 (k3) of the script, and verl's entropy bonus of 0.001 and dual "
            "clip of 3."
        ),
    ),
    deviations=(
        (
            "Wrong rollouts are dropped and answers count equally; the code keeps them with "
            "advantage 0 and averages over all tokens, those included."
        ),
        "Of graded rewards the greatest of a group counts as 1; in the code A is the reward itself "
        "where it is above 0.",
    ),
    audit="advantage, clip and batch sizes compared with core_algos.py and run_raftpp.sh",
    shown=("docs/claims.md#modes",),
)
