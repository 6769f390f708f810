"""Rewards for the length of an answer against the budget in its task's column `budget`.

Train Long, Think Short (arXiv:2508.08940), section 3.
"""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.tasks.length_budget import BUDGET
from grupo.util.errors import ConfigError


class _BudgetReward(PerRolloutReward):
    """Base class of rewards that read the column `budget`."""

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a budget that is no number of tokens; a curriculum may add it."""
        for task in tasks:
            if BUDGET in task.columns:
                budget_of(task)


@component
class BudgetTriangle(_BudgetReward):
    """L / B up to the budget B, then 1 - (L - B) / B, and 0 from 2 B on; L in tokens.

    >>> from grupo.core.types import Response
    >>> answers = [Rollout((("?", Response((0,) * n, (0.0,) * n)),)) for n in (50, 100, 150, 250)]
    >>> BudgetTriangle()(Task("k", "?", columns={"budget": 100}), answers)
    [0.5, 1.0, 0.5, 0.0]
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        used = rollout.length / budget_of(task)
        return max(0.0, min(used, 2 - used))


@component
class BudgetBand(_BudgetReward):
    """1 up to the budget B, then 1 - (L - B) / B, and 0 from 2 B on; L in tokens.

    It shortens more than `BudgetTriangle`, and costs accuracy.

    >>> from grupo.core.types import Response
    >>> answers = [Rollout((("?", Response((0,) * n, (0.0,) * n)),)) for n in (50, 100, 150, 250)]
    >>> BudgetBand()(Task("k", "?", columns={"budget": 100}), answers)
    [1.0, 1.0, 0.5, 0.0]
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        used = rollout.length / budget_of(task)
        return max(0.0, min(1.0, 2 - used))


def budget_of(task: Task) -> float:
    """The budget of a task, in tokens.

    Raises:
        ConfigError: The task has none, or one that is no number above 0.
    """
    budget = task.columns.get(BUDGET)
    if not isinstance(budget, int | float) or isinstance(budget, bool) or not budget > 0:
        raise ConfigError(
            f"tasks: {task.location or task.key}, column {BUDGET!r}: {budget!r}. Allowed: a number"
            " of tokens above 0, as StatedBudget(…) and BudgetedTasks(…) write it."
        )
    return float(budget)
