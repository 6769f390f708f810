"""Rubrics whose criteria a function checks; `Rubric` asks a model."""

from collections.abc import Callable, Mapping, Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.judges.rubric_items import RubricItems, check_items, items_of, weighted_mean


@component
class CheckedRubric(PerRolloutReward):
    """Sum of the weights of the criteria that the answer meets, divided by all weights.

    Each item is a term of the reward: 1 where it is met, otherwise 0.

    Args:
        items: The items, or the column of the task that holds them.
        is_met: Whether a text meets a criterion: `is_met(criterion, text)`.
        extract: Finds the answer in the rollout's text; no answer scores 0.

    >>> from grupo.core.types import Response
    >>> from grupo.rewards.judges import RubricItem
    >>> items = tuple(RubricItem(x, x, weight) for x, weight in (("a", 3), ("b", 2), ("c", 1)))
    >>> rollout = Rollout((("?", Response((), (), text="a, c")),))
    >>> reward = CheckedRubric(items, is_met=lambda criterion, text: criterion in text)
    >>> reward.score(Task("k", "?"), rollout)  # (3 + 1) / 6
    {'score': 0.6666666666666666, 'a': 1.0, 'b': 0.0, 'c': 1.0}
    """

    items: RubricItems
    is_met: Callable[[str, str], bool]
    extract: Extractor = whole_text

    def __post_init__(self) -> None:
        check_items(self.items)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        answer = self.extract(rollout.text)
        items = items_of(self.items, task)
        met = [float(answer is not None and self.is_met(x.criterion, answer)) for x in items]
        by_name = {item.name: value for item, value in zip(items, met, strict=True)}
        return {"score": weighted_mean(items, met), **by_name}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without items."""
        for task in tasks:
            items_of(self.items, task)
