"""Rubrics whose criteria a function checks; `Rubric` asks a model."""

from collections.abc import Callable, Sequence

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.extract_answer import Extractor, whole_text
from grupo.rewards.judges.rubric_items import RubricItems, check_items, items_of, weighted_mean


@component
class CheckedRubric(PerRolloutReward):
    """Sum of the weights of the criteria that the answer meets, divided by all weights.

    Args:
        items: The items, or the column of the task that holds them.
        is_met: Whether a text meets a criterion: `is_met(criterion, text)`.
        extract: Finds the answer in the rollout's text; no answer scores 0.

    >>> from grupo.core.types import Action
    >>> from grupo.rewards.judges import RubricItem
    >>> items = tuple(RubricItem(x, x, weight) for x, weight in (("a", 3), ("b", 2), ("c", 1)))
    >>> rollout = Rollout((("?", Action((), (), text="a, c")),))
    >>> reward = CheckedRubric(items, is_met=lambda criterion, text: criterion in text)
    >>> round(reward.score(Task("k", "?"), rollout), 3)  # (3 + 1) / 6
    0.667
    """

    items: RubricItems
    is_met: Callable[[str, str], bool]
    extract: Extractor = whole_text

    def __post_init__(self) -> None:
        check_items(self.items)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = self.extract(rollout.text)
        if answer is None:
            return 0.0
        items = items_of(self.items, task)
        return weighted_mean(items, [float(self.is_met(x.criterion, answer)) for x in items])

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without items."""
        for task in tasks:
            items_of(self.items, task)
