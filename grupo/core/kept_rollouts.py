"""Keep rules: which rollouts of a task the history keeps for later steps."""

from collections.abc import Collection, Sequence
from typing import Protocol

from grupo.core.component import component
from grupo.core.ranges import Finite, NonEmptyString, PositiveInt
from grupo.core.types import Rollout

MAX_REPLAYS = 32_768  # rollouts that a history keeps over all tasks


def rollout_id(step: int, place: int) -> str:
    """Identifies a rollout among all rollouts of a run.

    Args:
        step: The step that generated it, from 1.
        place: Its place among the rollouts of the step in `rollouts.jsonl`, from 0.

    >>> rollout_id(3, 0)
    '3.0'
    """
    return f"{step}.{place}"


class KeepRule(Protocol):
    """Chooses the rollouts of a task that later steps read in `task.replays`: a component.

    It is called after every step that draws the task, with the rollouts that were kept before and
    those of the step. A rollout that it has dropped must make no difference to later calls.
    """

    def __call__(self, rollouts: Sequence[Rollout], /) -> Collection[int]:
        """The indices of the kept rollouts.

        Args:
            rollouts: Rollouts of one task, oldest first.
        """
        ...


@component
class BestAndWorst:
    """Keeps the rollouts with the highest and with the lowest rewards; of equal ones, the newest.

    Args:
        count: number of best and of worst rollouts.

    >>> sorted(BestAndWorst(1)([Rollout(reward=r) for r in (1.0, 0.0, 0.5, 1.0)]))
    [1, 3]
    """

    count: PositiveInt = 1

    def __call__(self, rollouts: Sequence[Rollout]) -> Collection[int]:
        indices = range(len(rollouts))
        worst = sorted(indices, key=lambda i: (rollouts[i].reward, -i))[: self.count]
        best = sorted(indices, key=lambda i: (rollouts[i].reward, i))[-self.count :]
        return {*worst, *best}


@component
class NewestAbove:
    """Keeps the newest rollouts whose reward term is above a threshold: the oldest leave first.

    Args:
        count: number of rollouts.
        reward_term: name of the reward term, 0 where a rollout lacks it.
        threshold: a rollout is kept if its reward term is above this.

    >>> terms = [{"task": x} for x in (1.0, 0.0, 0.5, 1.0)]
    >>> NewestAbove(2, "task", 0.1)([Rollout(reward_terms=x) for x in terms])
    [2, 3]
    """

    count: PositiveInt
    reward_term: NonEmptyString
    threshold: Finite

    def __call__(self, rollouts: Sequence[Rollout]) -> Collection[int]:
        values = [rollout.reward_terms.get(self.reward_term, 0.0) for rollout in rollouts]
        return [i for i, value in enumerate(values) if value > self.threshold][-self.count :]
