"""Branching at fixed steps: trees of rollouts, and rollouts that deviate at one step."""

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
from grupo.util.errors import ConfigError


@runtime_checkable
class CorrelatedActor(Actor, Protocol):
    """An actor whose noise can be correlated with the noise of another actor."""

    def with_correlated_noise(self, other: "CorrelatedActor", correlation: float) -> Actor:
        """The same actor with noise of the same distribution and this correlation with `other`."""
        ...


@dataclass(frozen=True)
class _Path:
    """A path through the tree: its last node, and node and depth of each of its actions."""

    rollout: Rollout
    node: int = 0  # the root is 0, its children 1 to b, their children b + 1 to b + b^2 ...
    depth: int = 0
    nodes: tuple[tuple[int, int], ...] = ()

    def extended(self, rollout: Rollout, node: int, depth: int) -> "_Path":
        """The path with the new actions of `rollout`, in this node."""
        new = [(node, depth)] * (rollout.length - self.rollout.length)
        return _Path(rollout, node, depth, (*self.nodes, *new))

    def with_node_values(self, leaf: Rollout) -> Rollout:
        """The finished rollout with its step values; later actions belong to the last node."""
        later = [(self.node, self.depth)] * (leaf.length - len(self.nodes))
        nodes = [*self.nodes, *later]
        values = {
            "node": tuple(float(node) for node, _ in nodes),
            "depth": tuple(float(depth) for _, depth in nodes),
        }
        return replace(leaf, step_values={**leaf.step_values, **values})


@component
class SplitTree:
    """Generates a tree: one root, split into `branches` paths after each of `split_steps` actions.

    A root of no actions is still shared: for images, the initial noise. A path that has ended does
    not split. At a split the noise of siblings has the correlation `sibling_correlation`, which
    requires a `CorrelatedActor`. BranchGRPO (arXiv:2509.06040).

    Step values: `node`, a number per node: actions with the same number were sampled once; `depth`,
    the number of splits before an action.

    Args:
        split_steps: Numbers of actions after which paths split, increasing.
        branches: Paths that a split makes of one.
        sibling_correlation: Correlation in [0, 1) of the noise of siblings at their split.
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
        for depth, end in enumerate((*self.split_steps[1:], 0), 1):
            branches = await asyncio.gather(
                *(self._split(actor, path, depth, end) for path in paths)
            )
            paths = [path for siblings in branches for path in siblings]
        rollouts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork("on", i), path.rollout)
                for i, path in enumerate(paths)
            )
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            path.with_node_values(leaf) for leaf, path in zip(group.rollouts, paths, strict=True)
        )
        return replace(group, rollouts=tuple(annotated))

    async def _root(self, actor: Actor, observation: Observation) -> _Path:
        length = self.split_steps[0]
        rollout = await _extend(actor, Rollout(), observation, max(1, length))
        root = rollout if length else actor.truncate(rollout, 0)
        return _Path(Rollout()).extended(root, 0, 0)

    async def _split(self, actor: Actor, path: _Path, depth: int, length: int) -> Sequence[_Path]:
        """The children of a path, each of `length` actions; 0: until the policy stops."""
        if not path.rollout.truncated:
            return [path]
        first = path.node * self.branches + 1
        nodes = range(first, first + self.branches)
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
        """One child of a path; the noise of its first action is correlated with its siblings'."""
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
        first = branch_actor.with_correlated_noise(shared_actor, self.sibling_correlation)
        rollout = await _extend(first, path.rollout, "", path.rollout.length + 1)
        if not rollout.truncated or rollout.length == length:
            return rollout
        return await _extend(branch_actor, rollout, "", length)


@component
class SingleStepBranching:
    """Generates a greedy path and rollouts that deviate from it at one sampled action each.

    All later actions are greedy again, so the rollouts of one step differ by that sampled action
    only; the sampled actions alone are trained. The reward term `branch_step` is the number of
    actions before it. TempFlow-GRPO (arXiv:2508.04324).

    Args:
        branches_per_step: Rollouts that deviate at the same step.
        branch_steps: Steps at which rollouts deviate; empty: at every step of the path.
    """

    branches_per_step: PositiveInt = 8
    branch_steps: tuple[NonNegativeInt, ...] = ()

    provides = Provides(reward_terms=("branch_step",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group; 0 if that depends on the length of the path."""
        return self.branches_per_step * len(self.branch_steps)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        path = await _greedy_turn(actor, Rollout(), observation)
        steps = [k for k in self.branch_steps or range(path.length) if k < path.length]
        if not steps:
            raise ConfigError(
                f"branch_steps: {self.branch_steps}."
                f" Allowed: below {path.length}, the length of the path."
            )
        branches = [(step, i) for step in steps for i in range(self.branches_per_step)]
        rollouts = await asyncio.gather(
            *(
                self._branch(task, env, actor, actor.truncate(path, step), actor.fork(step, i))
                for step, i in branches
            )
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            replace(rollout, reward_terms={**rollout.reward_terms, "branch_step": float(step)})
            for (step, _), rollout in zip(branches, group.rollouts, strict=True)
        )
        return replace(group, rollouts=tuple(annotated))

    async def _branch(
        self, task: Task, env: Env, actor: Actor, path: Rollout, branch_actor: Actor
    ) -> Rollout:
        sampled = await branch_actor.with_stop(max_new_tokens=1)(path, "")
        rollout = path.append_turn("", sampled)
        if rollout.truncated:
            rollout = await _greedy_turn(actor, rollout, "")
        return await run_rollout(task, env, actor, rollout, _greedy_turn)


async def _greedy_turn(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """The rollout with a greedy response, which is not trained."""
    response = await actor.with_sampling(top_k=1)(rollout, observation)
    return rollout.append_turn(observation, replace(response, in_loss=False))


async def _extend(actor: Actor, rollout: Rollout, observation: Observation, length: int) -> Rollout:
    """The rollout continued to `length` actions, or to its end; 0: until the policy stops."""
    room = max(0, length - rollout.length)
    response = await actor.with_stop(max_new_tokens=room)(rollout, observation)
    longer = rollout.append_turn(observation, response)
    if not response.items or not longer.truncated or longer.length >= length:
        return longer
    return await _extend(actor, longer, "", length)
