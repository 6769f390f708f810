"""Rollouts that branch as they go."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, opening, play, scored
from grupo.core.types import Group, Observation, Rollout, Task


@dataclass(frozen=True)
class _Path:
    """A way down the tree, and the number of each of its nodes."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()

    @property
    def stopped(self) -> str:
        return self.rollout.turns[-1][1].stopped

    def back(self, depth: int) -> "_Path":
        """The way down to this depth."""
        return _Path(Rollout(self.rollout.turns[:depth]), self.nodes[:depth])


@piece
class SegmentTree:
    """`leaves` rollouts whose first turn is a tree of segments, each of `segment` tokens.

    `branches` to `first` segments begin it. Thereafter every path that is not over goes on, spread
    evenly over `branches` ways for each segment of the round before, as far as there is room for
    leaves. A path is over where the policy ends, and after `depth` segments. If all are before they
    are enough, some that the policy ended are cut where a segment began, and go on from there in
    `branches` ways each. TreePO (arXiv:2508.17445).

    Actions are marked `node`: where their numbers are the same, they were drawn once.
    """

    leaves: int = 16
    segment: int = 512
    depth: int = 14
    branches: int = 2
    first: int = 8

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        seen = await opening(task, env)
        paths = await self._grown(act, seen, task.attempts or self.leaves)
        plays = (play(task, env, act.fork("on", i), p.rollout) for i, p in enumerate(paths))
        group = await scored(task, env, await asyncio.gather(*plays))
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(marked(r, p.nodes) for r, p in pairs))

    async def _grown(self, act: Act, seen: Observation, leaves: int) -> Sequence[_Path]:
        number, chance = count(), act.chance("tree")
        over: list[_Path] = []
        going = [_Path()] * min(
            leaves, chance.randint(self.branches, max(self.branches, self.first))
        )
        while going:
            longer = (self._longer(act, seen, path, next(number)) for path in going)
            paths = await asyncio.gather(*longer)
            ended = [path for path in paths if self._is_over(path)]
            alive = [path for path in paths if not self._is_over(path)]
            over += ended
            room = leaves - len(over)
            ways = self.branches * len(paths)
            going = _spread(alive, min(room, ways)) if alive else self._again(over, room, chance)
        return over

    async def _longer(self, act: Act, seen: Observation, path: _Path, node: int) -> _Path:
        said = "" if path.nodes else seen
        action = await act.fork("node", node).until(limit=self.segment)(path.rollout, said)
        return _Path(path.rollout.then(said, action), (*path.nodes, node))

    def _is_over(self, path: _Path) -> bool:
        full = len(path.rollout.turns[-1][1].parts) == self.segment
        return path.stopped != "length" or not full or len(path.nodes) == self.depth

    def _again(self, over: Sequence[_Path], room: int, chance: Random) -> list[_Path]:
        """Paths that ended, cut somewhere; from the beginning if none did."""
        ended = [path for path in over if path.stopped != "length"] or [_Path()]
        chance.shuffle(ended)
        cut = [path.back(chance.randrange(max(1, len(path.nodes)))) for path in ended]
        return [path for path in cut for _ in range(self.branches)][:room]


def _spread(paths: Sequence[_Path], ways: int) -> list[_Path]:
    """Every path as often as evenly as can be, at least once."""
    each, more = divmod(max(ways, len(paths)), len(paths))
    return [path for i, path in enumerate(paths) for _ in range(each + (i < more))]


def marked(leaf: Rollout, nodes: Sequence[int]) -> Rollout:
    """The rollout with the number of its segment for each part; what came later is of the last."""
    turns = enumerate(leaf.turns)
    marks = tuple(float(nodes[min(i, len(nodes) - 1)]) for i, (_, a) in turns for _ in a.parts)
    return replace(leaf, marks={**leaf.marks, "node": marks})
