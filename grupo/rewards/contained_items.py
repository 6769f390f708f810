"""A rubric that is checked by code: the items whose text stands in the answer."""

from collections.abc import Mapping, Sequence

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.judges.rubric_items import RubricItems, check_items, items_of, weighted_mean


@component
class ContainedItems:
    """The weight of the rubric items whose criterion stands in the answer, over all weights.

    The reward has a term for each item: 1 where the item is met. RGR-GRPO, Bi et al.
    (arXiv:2511.12344), where a model judges the items: `grupo.rewards.judges.Rubric`.

    Args:
        items: The items, or the column of the task that holds them; criteria are texts to find.

    Raises:
        ConfigError: There is no item, or two have one name.

    >>> from grupo.core.types import Action
    >>> from grupo.rewards.judges import RubricItem
    >>> rollout = Rollout((("?", Action((1,), (0.0,), text="3 + 4 = 7")),))
    >>> reward = ContainedItems((RubricItem("sum", "7", 3.0), RubricItem("unit", "m")))
    >>> reward(Task("k", "?"), rollout)
    {'score': 0.75, 'sum': 1.0, 'unit': 0.0}
    """

    items: RubricItems

    def __post_init__(self) -> None:
        check_items(self.items)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a rubric."""
        for task in tasks:
            items_of(self.items, task)

    def __call__(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        items = items_of(self.items, task)
        met = [float(item.criterion in rollout.text) for item in items]
        by_name = {item.name: value for item, value in zip(items, met, strict=True)}
        return {"score": weighted_mean(items, met), **by_name}
