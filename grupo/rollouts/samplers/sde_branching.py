"""Rollouts that branch at fixed places, where all the chance that tells them apart is spent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.types import Group, Observation, Rollout, Task


@runtime_checkable
class Akin(Act, Protocol):
    """A policy whose chance can be another's in part."""

    def akin(self, other: "Akin", share: float) -> Act:
        """The same, its chance as likely as before and of correlation `share` with `other`'s."""
        ...


@dataclass(frozen=True)
class _Path:
    """A way down the tree: the node that it came to, and node and depth of each of its actions."""

    rollout: Rollout
    node: int = 0  # the root is 0, its children 1 to b, theirs b + 1 to b + b^2 ...
    depth: int = 0
    nodes: tuple[tuple[int, int], ...] = ()

    def grown(self, rollout: Rollout, node: int, depth: int) -> "_Path":
        """The way with what `rollout` has more, in this node."""
        more = [(node, depth)] * (rollout.length - self.rollout.length)
        return _Path(rollout, node, depth, (*self.nodes, *more))

    def marked(self, leaf: Rollout) -> Rollout:
        """The leaf that it led to, with marks; what came later is of the last node."""
        later = [(self.node, self.depth)] * (leaf.length - len(self.nodes))
        nodes = [*self.nodes, *later]
        marks = {"node": tuple(float(n) for n, _ in nodes)}
        marks |= {"depth": tuple(float(d) for _, d in nodes)}
        return replace(leaf, marks={**leaf.marks, **marks})


@piece
class SplitTree:
    """A tree of one root, which splits into `branches` ways after each number of actions in `at`.

    A root of no actions is still shared: of an image, the noise that it begins with. A path that is
    over splits no more. What is drawn at a split has the correlation `alike` among siblings, which
    takes a policy that is `Akin`. BranchGRPO (arXiv:2509.06040).

    Actions are marked `node`, by numbers that are the same where they were drawn once, and `depth`:
    how many splits lie before them.
    """

    at: tuple[int, ...] = (0, 3, 6, 9)
    branches: int = 2
    alike: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.alike < 1:
            raise Refused(f"alike: {self.alike}. Allowed: 0 or more and below 1, a correlation.")
        if not self.at or any(a >= b for a, b in pairwise((-1, *self.at))):
            raise Refused(f"at: {self.at}. Allowed: numbers of actions, each above the one before.")

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.branches ** len(self.at)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        paths = [await self._root(act, seen)]
        for depth, end in enumerate((*self.at[1:], 0), 1):
            split = (self._split(act, path, depth, end) for path in paths)
            paths = [path for some in await asyncio.gather(*split) for path in some]
        plays = (play(task, env, act.fork("on", i), p.rollout) for i, p in enumerate(paths))
        group = await scored(task, env, await asyncio.gather(*plays))
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(path.marked(leaf) for leaf, path in pairs))

    async def _root(self, act: Act, seen: Observation) -> _Path:
        begun = await _longer(act, Rollout(), seen, max(1, self.at[0]))
        root = begun if self.at[0] else act.cut(begun, 0)
        return _Path(Rollout()).grown(root, 0, 0)

    async def _split(self, act: Act, path: _Path, depth: int, end: int) -> Sequence[_Path]:
        """The path gone on with in each of its ways, to so many actions in all."""
        if not path.rollout.truncated:
            return [path]
        first = path.node * self.branches + 1
        nodes = range(first, first + self.branches)
        ways = (self._way(act, path, act.fork("node", node), end) for node in nodes)
        grown = zip(await asyncio.gather(*ways), nodes, strict=True)
        return [path.grown(rollout, node, depth) for rollout, node in grown]

    async def _way(self, act: Act, path: _Path, own: Act, end: int) -> Rollout:
        """The path gone on with by a stream of its own, at first by one akin to its siblings'."""
        if not self.alike:
            return await _longer(own, path.rollout, "", end)
        common = act.fork("split", path.node)
        if not isinstance(own, Akin) or not isinstance(common, Akin):
            raise Refused(f"alike: {self.alike}. Allowed: 0 where words are said.")
        first = own.akin(common, self.alike)
        begun = await _longer(first, path.rollout, "", path.rollout.length + 1)
        over = not begun.truncated or begun.length == end
        return begun if over else await _longer(own, begun, "", end)


@piece
class DeviateOnce:
    """A path of likeliest actions, and `branches` that leave it at each place by one drawn action.

    What follows is the likeliest again, so that of the branches of a place only the drawn actions
    differ by chance; they alone are learned. Places are numbers of actions before it, `at`, or all.
    The part `place` says which. TempFlow-GRPO (arXiv:2508.04324).
    """

    branches: int = 8
    at: tuple[int, ...] = ()
    gives = ("place",)

    @property
    def n(self) -> int:
        """How many rollouts a group has; 0 if that depends on the path."""
        return self.branches * len(self.at)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        path = await _likeliest(act, Rollout(), seen)
        places = [k for k in self.at or range(path.length) if k < path.length]
        if not places:
            raise Refused(f"at: {self.at}. Allowed: below {path.length}, the length of the path.")
        ways = [(k, i) for k in places for i in range(self.branches)]
        plays = (self._play(task, env, act, act.cut(path, k), act.fork(k, i)) for k, i in ways)
        group = await scored(task, env, await asyncio.gather(*plays))
        told = (
            replace(r, parts={**r.parts, "place": float(k)})
            for (k, _), r in zip(ways, group.rollouts, strict=True)
        )
        return replace(group, rollouts=tuple(told))

    async def _play(self, task: Task, env: Env, act: Act, path: Rollout, other: Act) -> Rollout:
        left = path.then("", await other.until(limit=1)(path, ""))
        back = await _likeliest(act, left, "") if left.truncated else left
        return await play(task, env, act, back, _likeliest)


async def _likeliest(act: Act, rollout: Rollout, seen: Observation) -> Rollout:
    """What the policy does without chance, which it is not to learn."""
    return rollout.then(seen, replace(await act.at(top_k=1)(rollout, seen), learned=False))


async def _longer(act: Act, rollout: Rollout, seen: Observation, length: int) -> Rollout:
    """Gone on with until it has `length` actions, or is over; 0: until the policy stops."""
    action = await act.until(limit=max(0, length - rollout.length))(rollout, seen)
    longer = rollout.then(seen, action)
    over = not action.parts or not longer.truncated or longer.length >= length
    return longer if over else await _longer(act, longer, "", length)
