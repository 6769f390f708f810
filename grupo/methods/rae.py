"""RAE: a moving-average baseline for each role. Liu et al., 2025, arXiv:2506.24119."""

from collections.abc import Iterable

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via Multi-Agent Multi-Turn "
    "Reinforcement Learning",
    use="One policy plays all roles of a game, and the mean over both players is uninformative.",
    tags=("self-play", "agents", "advantage"),
    checked=("golden", "properties", "reference", "run"),
)


@component
class SubtractMovingMean:
    """x - b, b <- decay b + (1 - decay) r for every rollout of the task so far, this group
    included.

    Rollouts of one group have no order: each counts as the group's mean.

    Args:
        decay: decay of the moving average, per rollout.
    """

    decay: Fraction = 0.95

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        b = torch.zeros_like(x)
        for label in batch.group.unique().tolist():
            members = batch.group == label
            b[members] = self._moving_mean([*batch.history[label].rewards, x[members].tolist()])
        return x - b

    def _moving_mean(self, reward_groups: Iterable[Iterable[float]]) -> float:
        b = 0.0
        for rewards in map(list, reward_groups):
            weight = self.decay ** len(rewards)
            b = weight * b + (1 - weight) * (sum(rewards) / max(len(rewards), 1))
        return b


def rae(group_size: PositiveInt = 1, decay: Fraction = 0.95) -> Method:
    """A = R - b, b <- decay b + (1 - decay) R: the moving mean of this task's returns (eq. 2).

    loss = mean over rollouts of sum over tokens of -A log pi (eq. 3), without length bias. A task
    is one role of one game.

    Args:
        group_size: rollouts per task.
        decay: decay of the moving average, per rollout (authors' code: 0.95).
    """
    # b starts at 0 (algorithm 1). The code computes A before it updates b: that A is this one
    # divided by decay.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SubtractMovingMean(decay),
        loss=Reinforce(),
        aggregation=token_sum,
    )
