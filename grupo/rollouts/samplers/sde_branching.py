"""Branching after given numbers of actions, which are tokens or denoising steps of an image."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Protocol, runtime_checkable

from annotated_types import Interval

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import NonNegativeInt, NumberOrSchedule, PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.prefixes import finish_and_score
from grupo.util.errors import ConfigError


@runtime_checkable
class CorrelatedActor(Actor, Protocol):
    """An actor whose sampling noise can be correlated with the noise of another actor."""

    def with_correlated_noise(self, other: "CorrelatedActor", correlation: float) -> Actor:
        """The actor with noise that has this correlation with the noise of `other`.

        The distribution of the noise is unchanged.
        """
        ...


@dataclass(frozen=True)
class _Path:
    """A path through the tree, from the root to a node.

    Args:
        rollout: The rollout so far.
        node: Number of the last node. The root is 0, its children are 1 to b, their children are
            b + 1 to b + b^2, and so on, with b branches per split.
        depth: Depth of the last node, the number of splits before it.
        nodes_and_depths: Node and depth of each action of the rollout.
    """

    rollout: Rollout
    node: int = 0
    depth: int = 0
    nodes_and_depths: tuple[tuple[int, int], ...] = ()

    def extended(self, rollout: Rollout, node: int, depth: int) -> "_Path":
        """The path to a child node, to which the new actions of `rollout` belong."""
        added = [(node, depth)] * (rollout.length - self.rollout.length)
        return _Path(rollout, node, depth, (*self.nodes_and_depths, *added))

    def with_node_values(self, finished: Rollout) -> Rollout:
        """The finished rollout with the step values `node` and `depth`.

        Actions that were generated after the path belong to its last node.
        """
        num_later = finished.length - len(self.nodes_and_depths)
        pairs = [*self.nodes_and_depths, *[(self.node, self.depth)] * num_later]
        values = {
            "node": tuple(float(node) for node, _ in pairs),
            "depth": tuple(float(depth) for _, depth in pairs),
        }
        return finished.with_step_values(values)


@component
class SplitTree:
    """Generates a tree of rollouts: each path splits into `branches` paths at given lengths.

    A path splits when it has as many actions as one of the `split_steps`. A path that has ended
    does not split. If the first of the `split_steps` is 0, the paths still share their start, such
    as the initial noise of an image. The new paths of a split are siblings. The noise of their
    first actions has the correlation `sibling_correlation`. A correlation above 0 requires a
    `CorrelatedActor`. BranchGRPO (arXiv:2509.06040).

    An action has two step values. `node` is the number of its node: actions of two rollouts with
    the same number were generated once. `depth` is the number of splits before the action.

    Args:
        split_steps: Numbers of actions after which paths split, in increasing order.
        branches: Number of paths into which a path splits.
        sibling_correlation: Correlation in [0, 1) of the noise in the first action after a split.
    """

    split_steps: tuple[NonNegativeInt, ...] = (0, 3, 6, 9)
    branches: PositiveInt = 2
    sibling_correlation: Annotated[NumberOrSchedule, Interval(ge=0, lt=1)] = 0.0

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise((-1, *self.split_steps)))
        is_allowed = bool(self.split_steps) and ascending
        check_field(
            self, "split_steps", is_allowed, "numbers of actions, each above the one before"
        )

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.branches ** len(self.split_steps)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        paths = [await self._root(actor, observation)]
        # a child ends at the next split; the last children are generated to their ends
        for depth, length in enumerate((*self.split_steps[1:], 0), 1):
            sibling_lists = await asyncio.gather(
                *(self._split(actor, path, depth, length) for path in paths)
            )
            paths = [path for siblings in sibling_lists for path in siblings]
        group = await finish_and_score(task, env, actor, [path.rollout for path in paths])
        return group.with_rollouts(
            path.with_node_values(rollout)
            for rollout, path in zip(group.rollouts, paths, strict=True)
        )

    async def _root(self, actor: Actor, observation: Observation) -> _Path:
        """The path to the root, with the actions before the first split."""
        length = self.split_steps[0]
        rollout = await _extend(actor, Rollout(), observation, max(1, length))
        root = rollout if length else actor.truncate(rollout, 0)
        return _Path(Rollout()).extended(root, 0, 0)

    async def _split(self, actor: Actor, path: _Path, depth: int, length: int) -> Sequence[_Path]:
        """The children of a path, or the path itself if it has ended.

        Args:
            actor: Generates the actions.
            path: The path that splits.
            depth: Depth of the children.
            length: Number of actions up to the end of a child, counted from the root. With 0, a
                child is generated until the policy stops.
        """
        if not path.rollout.truncated:
            return [path]
        first_child = path.node * self.branches + 1
        nodes = range(first_child, first_child + self.branches)
        rollouts = await asyncio.gather(
            *(self._branch(actor, path, actor.fork("node", node), length) for node in nodes)
        )
        return [
            path.extended(rollout, node, depth)
            for rollout, node in zip(rollouts, nodes, strict=True)
        ]

    async def _branch(
        self, parent_actor: Actor, path: _Path, branch_actor: Actor, length: int
    ) -> Rollout:
        """The rollout of one child; the noise of siblings is correlated in their first action."""
        if not self.sibling_correlation:
            return await _extend(branch_actor, path.rollout, "", length)
        shared_actor = parent_actor.fork("split", path.node)
        if not isinstance(branch_actor, CorrelatedActor) or not isinstance(
            shared_actor, CorrelatedActor
        ):
            raise ConfigError(
                f"sibling_correlation: {self.sibling_correlation}."
                " Allowed: 0 for a policy that generates tokens."
            )
        correlated = branch_actor.with_correlated_noise(shared_actor, self.sibling_correlation)
        rollout = await _extend(correlated, path.rollout, "", path.rollout.length + 1)
        if not rollout.truncated or rollout.length == length:
            return rollout
        return await _extend(branch_actor, rollout, "", length)


@component
class SingleStepBranching:
    """Generates a greedy path, and rollouts that each deviate from the path at one sampled action.

    All actions after the sampled one are greedy again. The rollouts that deviate at the same action
    therefore differ only by this action and its consequences. Only sampled actions are trained on.
    The reward term `branch_step` is the number of actions before the sampled one. TempFlow-GRPO
    (arXiv:2508.04324).

    Args:
        branches_per_step: Number of rollouts that deviate at the same action.
        branch_steps: Numbers of actions after which rollouts deviate; () stands for every number.
    """

    branches_per_step: PositiveInt = 8
    branch_steps: tuple[NonNegativeInt, ...] = ()

    provides = Provides(reward_terms=("branch_step",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group; 0 if their number depends on the length of the path."""
        return self.branches_per_step * len(self.branch_steps)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        path = await _greedy_turn(actor, Rollout(), observation)
        steps = [step for step in self.branch_steps or range(path.length) if step < path.length]
        if not steps:
            raise ConfigError(
                f"branch_steps: {self.branch_steps}."
                f" Allowed: below {path.length}, the length of the path."
            )
        steps_and_branches = [(step, i) for step in steps for i in range(self.branches_per_step)]
        rollouts = await asyncio.gather(
            *(
                self._branch(task, env, actor, actor.truncate(path, step), actor.fork(step, i))
                for step, i in steps_and_branches
            )
        )
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(
            rollout.with_reward_terms({"branch_step": float(step)})
            for (step, _), rollout in zip(steps_and_branches, group.rollouts, strict=True)
        )

    async def _branch(
        self, task: Task, env: Env, actor: Actor, path: Rollout, branch_actor: Actor
    ) -> Rollout:
        """The path with one sampled action, continued greedily to its end."""
        sampled_action = await branch_actor.with_stop(max_new_tokens=1)(path, "")
        rollout = path.append_turn("", sampled_action)
        if rollout.truncated:
            rollout = await _greedy_turn(actor, rollout, "")
        return await run_rollout(task, env, actor, rollout, _greedy_turn)


async def _greedy_turn(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """The rollout with a greedy response, which is not trained on."""
    response = await actor.with_sampling(top_k=1)(rollout, observation)
    return rollout.append_turn(observation, replace(response, in_loss=False))


async def _extend(actor: Actor, rollout: Rollout, observation: Observation, length: int) -> Rollout:
    """The rollout continued until it has `length` actions in all, or until the policy stops.

    With length 0, the rollout is continued until the policy stops.
    """
    num_missing = max(0, length - rollout.length)
    response = await actor.with_stop(max_new_tokens=num_missing)(rollout, observation)
    longer = rollout.append_turn(observation, response)
    if not response.items or not longer.truncated or longer.length >= length:
        return longer
    return await _extend(actor, longer, "", length)
