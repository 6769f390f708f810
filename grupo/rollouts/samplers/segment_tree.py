"""Rollouts that branch as they go."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.types import Group, Observation, Rollout, Task


@dataclass(frozen=True)
class _Path:
    """A way down the tree, and the number of each of its nodes."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()

    @property
    def finish_reason(self) -> str:
        return self.rollout.turns[-1][1].finish_reason

    def ancestor(self, depth: int) -> "_Path":
        """The way down to this depth."""
        return _Path(Rollout(self.rollout.turns[:depth]), self.nodes[:depth])


@component
class SegmentTree:
    """`leaves` rollouts whose first turn is a tree of segments, each of `segment_tokens` tokens.

    `branches` to `first` segments begin it. Thereafter every path that is not over goes on, spread
    evenly over `branches` ways for each segment of the round before, as far as there is room for
    leaves. A path is over where the policy ends, and after `depth` segments. If all are before they
    are enough, some that the policy ended are cut where a segment began, and go on from there in
    `branches` ways each. TreePO (arXiv:2508.17445).

    Actions are marked `node`: where their numbers are the same, they were drawn once.
    """

    leaves: int = 16
    segment_tokens: int = 512
    max_depth: int = 14
    branches: int = 2
    max_initial_branches: int = 8

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        paths = await self._grow_tree(actor, seen, task.group_size or self.leaves)
        plays = (
            run_rollout(task, env, actor.fork("on", i), p.rollout) for i, p in enumerate(paths)
        )
        group = await score_group(task, env, await asyncio.gather(*plays))
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(with_node_ids(r, p.nodes) for r, p in pairs))

    async def _grow_tree(
        self, actor: Actor, observation: Observation, leaves: int
    ) -> Sequence[_Path]:
        number, chance = count(), actor.rng("tree")
        over: list[_Path] = []
        going = [_Path()] * min(
            leaves, chance.randint(self.branches, max(self.branches, self.max_initial_branches))
        )
        while going:
            longer = (self._extend(actor, observation, path, next(number)) for path in going)
            paths = await asyncio.gather(*longer)
            ended = [path for path in paths if self._is_finished(path)]
            alive = [path for path in paths if not self._is_finished(path)]
            over += ended
            room = leaves - len(over)
            ways = self.branches * len(paths)
            going = (
                _distribute_branches(alive, min(room, ways))
                if alive
                else self._restart_paths(over, room, chance)
            )
        return over

    async def _extend(
        self, actor: Actor, observation: Observation, path: _Path, node: int
    ) -> _Path:
        said = "" if path.nodes else observation
        action = await actor.fork("node", node).with_stop(max_new_tokens=self.segment_tokens)(
            path.rollout, said
        )
        return _Path(path.rollout.append_turn(said, action), (*path.nodes, node))

    def _is_finished(self, path: _Path) -> bool:
        full = len(path.rollout.turns[-1][1].items) == self.segment_tokens
        return path.finish_reason != "length" or not full or len(path.nodes) == self.max_depth

    def _restart_paths(self, finished: Sequence[_Path], room: int, rng: Random) -> list[_Path]:
        """Paths that ended, cut somewhere; from the beginning if none did."""
        ended = [path for path in finished if path.finish_reason != "length"] or [_Path()]
        rng.shuffle(ended)
        cut = [path.ancestor(rng.randrange(max(1, len(path.nodes)))) for path in ended]
        return [path for path in cut for _ in range(self.branches)][:room]


def _distribute_branches(paths: Sequence[_Path], num_branches: int) -> list[_Path]:
    """Every path as often as evenly as can be, at least once."""
    each, more = divmod(max(num_branches, len(paths)), len(paths))
    return [path for i, path in enumerate(paths) for _ in range(each + (i < more))]


def with_node_ids(leaf: Rollout, nodes: Sequence[int]) -> Rollout:
    """The rollout with the number of its segment for each part; what came later is of the last."""
    turns = enumerate(leaf.turns)
    marks = tuple(float(nodes[min(i, len(nodes) - 1)]) for i, (_, a) in turns for _ in a.items)
    return replace(leaf, step_values={**leaf.step_values, "node": marks})
