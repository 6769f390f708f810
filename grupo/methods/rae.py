"""RAE: a moving-average baseline for each role. Liu et al., 2025, arXiv:2506.24119."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rae(group_size: PositiveInt = 1, decay: Probability = 0.95) -> Method:
    """A = R - b, b <- decay b + (1 - decay) R: the moving mean of this task's returns (eq. 2).

    loss = mean over rollouts of sum over tokens of -A log pi (eq. 3), without length bias. A task
    is one role of one game.

    Args:
        group_size: rollouts per task.
        decay: decay of the moving average, per rollout (authors' code: 0.95).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SubtractMovingMean(decay),
        loss=Reinforce(),
        aggregation=token_sum,
    )


@component
class MovingMean(TaskStatistic):
    """b <- decay b + (1 - decay) r for every rollout of a task, from 0.

    Rollouts of one group have no order: each counts as the group's mean.

    Args:
        decay: decay of the moving average, per rollout.
    """

    decay: Probability = 0.95

    @property
    def initial_state(self) -> StatisticState:
        return (0.0,)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        (b,) = state
        weight = self.decay ** len(group.rewards)
        mean = sum(group.rewards) / max(len(group.rewards), 1)
        return (weight * b + (1 - weight) * mean,)


@component
class SubtractMovingMean:
    """x - b, b the `MovingMean` of the task so far, this group included.

    Args:
        decay: decay of the moving average, per rollout.
    """

    decay: Probability = 0.95

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(MovingMean(self.decay),))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        statistic = MovingMean(self.decay)
        b = torch.zeros_like(x)
        for label in batch.group.unique().tolist():
            members = batch.group == label
            now = ScoredGroup(0, tuple(x[members].tolist()))
            (b[members],) = statistic(batch.history[label].state(statistic), now)
        return x - b


PAPER = Paper(
    title="SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via Multi-Agent Multi-Turn "
    "Reinforcement Learning",
    use="One policy plays all roles of a game, and the mean over both players is uninformative.",
    tags=("self-play", "agents", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        (
            "spiral-rl/spiral, train_spiral.py and cmd/tinker/run_tinker_qwen3_4b.sh; eq. 2 and "
            "3, algorithm 1"
        ),
    ),
    plan=(
        "run_tinker_qwen3_4b.sh: num_substeps 1: one update per step (run.sh makes 2 passes with "
        "PPO's clip)"
    ),
    missing=(
        "The second pass over the rollouts, with PPO's clipped ratio, of run.sh.",
        "Turns whose return is exactly 0 are left out of the batch there (filter_zero_adv).",
        "The rewards are left to the environment: train_spiral.py gives -1.5 for an invalid move "
        "and 0.5 to the other player, and 0 to both in a game that is cut off.",
    ),
    deviations=(
        (
            "b is updated before A is computed (algorithm 1); the code computes A first: that A "
            "is this one divided by decay."
        ),
        "The sum of a rollout's tokens counts, over all its turns, and the mean is over rollouts."
        " run.sh divides the sum of a turn by generate_max_length, 4096, and averages over turns.",
        "There is one moving mean for each task. In train_spiral.py each actor process has its own"
        " for each of the two roles.",
    ),
    audit=(
        "baseline, its decay and the order of its update compared with train_spiral.py; equations "
        "as cited in the file"
    ),
)
