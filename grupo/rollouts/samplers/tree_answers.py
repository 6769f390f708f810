"""Answers of a search tree, with the values of their steps as labels."""

from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.prefix_value import with_values
from grupo.rollouts.samplers.tree_search import ScoredAnswer, TreeSearch


@component
class TreeAnswers(TreeSearch):
    """The different rollouts that a search tree completes, with the values of their steps.

    The search is that of `TreeSearch`. Two step values are set at the item behind each step that is
    in the tree: `prefix_cut` is 1, and `prefix_value` is the step's value, the mean reward of the
    rollouts through it. At the last item they are 1 and the rollout's reward. Both are 0 at other
    items. `StepValueLoss` trains a head on them. Failed rollouts have no values; their last steps
    left the tree.
    """

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        tree = await self.search(task, env, actor)
        distinct = {_items(answer.rollout): answer for answer in reversed(tree.answers)}
        labelled = [
            answer.rollout if answer.rollout.error else with_values(answer.rollout, _values(answer))
            for answer in reversed(distinct.values())
        ]
        return Group(task, tuple(labelled))


def _items(rollout: Rollout) -> tuple[object, ...]:
    return tuple(item for _, response in rollout.turns for item in response.items)


def _values(answer: ScoredAnswer) -> Mapping[int, float]:
    """The values of an answer's beginnings, by their numbers of items."""
    rollout = answer.rollout
    steps = {len(node.state.items): node.q for node in answer.path[1:]}
    inside = {count: value for count, value in steps.items() if count < rollout.length}
    return {**inside, rollout.length - 1: rollout.reward}
