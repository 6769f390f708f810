"""Rollouts that branch at fixed places, where all the chance that tells them apart is spent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.types import Group, Observation, Rollout, Task


@runtime_checkable
class CorrelatedActor(Actor, Protocol):
    """A policy whose chance can be another's in part."""

    def with_correlated_noise(self, other: "CorrelatedActor", correlation: float) -> Actor:
        """The same, its chance as likely as before and of correlation `share` with `other`'s."""
        ...


@dataclass(frozen=True)
class _Path:
    """A way down the tree: the node that it came to, and node and depth of each of its actions."""

    rollout: Rollout
    node: int = 0  # the root is 0, its children 1 to b, theirs b + 1 to b + b^2 ...
    depth: int = 0
    nodes: tuple[tuple[int, int], ...] = ()

    def extended(self, rollout: Rollout, node: int, depth: int) -> "_Path":
        """The way with what `rollout` has more, in this node."""
        more = [(node, depth)] * (rollout.length - self.rollout.length)
        return _Path(rollout, node, depth, (*self.nodes, *more))

    def with_node_values(self, leaf: Rollout) -> Rollout:
        """The leaf that it led to, with marks; what came later is of the last node."""
        later = [(self.node, self.depth)] * (leaf.length - len(self.nodes))
        nodes = [*self.nodes, *later]
        marks = {"node": tuple(float(n) for n, _ in nodes)}
        marks |= {"depth": tuple(float(d) for _, d in nodes)}
        return replace(leaf, step_values={**leaf.step_values, **marks})


@component
class SplitTree:
    """A tree of one root, which splits into `branches` ways after each number of actions in `at`.

    A root of no actions is still shared: of an image, the noise that it begins with. A path that is
    over splits no more. What is drawn at a split has the correlation `alike` among siblings, which
    takes a policy that is `CorrelatedActor`. BranchGRPO (arXiv:2509.06040).

    Actions are marked `node`, by numbers that are the same where they were drawn once, and `depth`:
    how many splits lie before them.
    """

    split_steps: tuple[int, ...] = (0, 3, 6, 9)
    branches: int = 2
    sibling_correlation: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.sibling_correlation < 1:
            raise ConfigError(
                f"alike: {self.sibling_correlation}. Allowed: 0 or more and below 1, a correlation."
            )
        if not self.split_steps or any(a >= b for a, b in pairwise((-1, *self.split_steps))):
            raise ConfigError(
                f"at: {self.split_steps}. Allowed: numbers of actions, each above the one before."
            )

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.branches ** len(self.split_steps)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        paths = [await self._root(actor, seen)]
        for depth, end in enumerate((*self.split_steps[1:], 0), 1):
            split = (self._split(actor, path, depth, end) for path in paths)
            paths = [path for some in await asyncio.gather(*split) for path in some]
        plays = (
            run_rollout(task, env, actor.fork("on", i), p.rollout) for i, p in enumerate(paths)
        )
        group = await score_group(task, env, await asyncio.gather(*plays))
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(path.with_node_values(leaf) for leaf, path in pairs))

    async def _root(self, actor: Actor, observation: Observation) -> _Path:
        begun = await _extend(actor, Rollout(), observation, max(1, self.split_steps[0]))
        root = begun if self.split_steps[0] else actor.truncate(begun, 0)
        return _Path(Rollout()).extended(root, 0, 0)

    async def _split(self, actor: Actor, path: _Path, depth: int, length: int) -> Sequence[_Path]:
        """The path gone on with in each of its ways, to so many actions in all."""
        if not path.rollout.truncated:
            return [path]
        first = path.node * self.branches + 1
        nodes = range(first, first + self.branches)
        ways = (self._branch(actor, path, actor.fork("node", node), length) for node in nodes)
        grown = zip(await asyncio.gather(*ways), nodes, strict=True)
        return [path.extended(rollout, node, depth) for rollout, node in grown]

    async def _branch(
        self, parent_actor: Actor, path: _Path, branch_actor: Actor, length: int
    ) -> Rollout:
        """The path gone on with by a stream of its own, at first by one akin to its siblings'."""
        if not self.sibling_correlation:
            return await _extend(branch_actor, path.rollout, "", length)
        common = parent_actor.fork("split", path.node)
        if not isinstance(branch_actor, CorrelatedActor) or not isinstance(common, CorrelatedActor):
            raise ConfigError(
                f"alike: {self.sibling_correlation}. Allowed: 0 where words are said."
            )
        first = branch_actor.with_correlated_noise(common, self.sibling_correlation)
        begun = await _extend(first, path.rollout, "", path.rollout.length + 1)
        over = not begun.truncated or begun.length == length
        return begun if over else await _extend(branch_actor, begun, "", length)


@component
class SingleStepBranching:
    """A path of likeliest actions, and `branches` that leave it at each place by one drawn action.

    What follows is the likeliest again, so that of the branches of a place only the drawn actions
    differ by chance; they alone are learned. Places are numbers of actions before it, `at`, or all.
    The part `place` says which. TempFlow-GRPO (arXiv:2508.04324).
    """

    branches_per_step: int = 8
    branch_steps: tuple[int, ...] = ()
    provides = ("place",)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has; 0 if that depends on the path."""
        return self.branches_per_step * len(self.branch_steps)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        path = await _greedy_turn(actor, Rollout(), seen)
        places = [k for k in self.branch_steps or range(path.length) if k < path.length]
        if not places:
            raise ConfigError(
                f"at: {self.branch_steps}. Allowed: below {path.length}, the length of the path."
            )
        ways = [(k, i) for k in places for i in range(self.branches_per_step)]
        plays = (
            self._branch(task, env, actor, actor.truncate(path, k), actor.fork(k, i))
            for k, i in ways
        )
        group = await score_group(task, env, await asyncio.gather(*plays))
        told = (
            replace(r, reward_terms={**r.reward_terms, "place": float(k)})
            for (k, _), r in zip(ways, group.rollouts, strict=True)
        )
        return replace(group, rollouts=tuple(told))

    async def _branch(
        self, task: Task, env: Env, actor: Actor, path: Rollout, branch_actor: Actor
    ) -> Rollout:
        left = path.append_turn("", await branch_actor.with_stop(max_new_tokens=1)(path, ""))
        back = await _greedy_turn(actor, left, "") if left.truncated else left
        return await run_rollout(task, env, actor, back, _greedy_turn)


async def _greedy_turn(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """What the policy does without chance, which it is not to learn."""
    return rollout.append_turn(
        observation,
        replace(await actor.with_sampling(top_k=1)(rollout, observation), in_loss=False),
    )


async def _extend(actor: Actor, rollout: Rollout, observation: Observation, length: int) -> Rollout:
    """Gone on with until it has `length` actions, or is over; 0: until the policy stops."""
    action = await actor.with_stop(max_new_tokens=max(0, length - rollout.length))(
        rollout, observation
    )
    longer = rollout.append_turn(observation, action)
    over = not action.items or not longer.truncated or longer.length >= length
    return longer if over else await _extend(actor, longer, "", length)
