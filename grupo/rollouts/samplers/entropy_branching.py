"""Rollouts that branch where what the world said left the policy less sure."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, scored
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.segment_tree import marked


@dataclass(frozen=True)
class _Path:
    """A rollout so far, and the number of each of its turns."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()
    taken: int = 0  # turns that it took over from another
    first: float = 0.0  # how unsure its first turn was
    last: float = 0.0


@piece
class BranchWhenUnsure:
    """`leaves` rollouts: `first` begin at once, others go on from where one of these is less sure.

    H of a turn is the sum of the entropies of its first `tokens` tokens, the entropy of a token
    that may be any being 1. After a turn whose H is dH above that of its rollout's first, `ways` -
    1 others go on from before it, each by a chance of clip(`chance` + `weight` dH, 0, 1), as far as
    there is room for leaves. Where all rollouts are over and too few, one more begins.

    Actions are marked `node`: where their numbers are the same, they were drawn once.

    ARPO, Dong et al. (arXiv:2507.19849).
    """

    leaves: int = 16
    first: int = 8
    ways: int = 2
    chance: float = 0.5
    weight: float = 0.2
    tokens: int = 20

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        paths = await self._grown(task, env, act)
        group = await scored(task, env, [path.rollout for path in paths])
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(marked(r, p.nodes) for r, p in pairs))

    async def _grown(self, task: Task, env: Env, act: Act) -> Sequence[_Path]:
        number, chance, leaves = count(), act.chance("branches"), task.attempts or self.leaves
        over: list[_Path] = []
        going = [_Path()] * min(self.first, leaves)
        while going:
            turns = (self._turn(task, env, act, path, next(number)) for path in going)
            pairs = list(zip(going, await asyncio.gather(*turns), strict=True))
            over += [path for path, now in pairs if now is path]
            alive = [(path, now) for path, now in pairs if now is not path]
            room = leaves - len(over) - len(alive)
            others = self._others(alive, chance)[:room]
            going = [*(now for _, now in alive), *others] or [_Path()] * min(room, 1)
        return over

    async def _turn(self, task: Task, env: Env, act: Act, path: _Path, node: int) -> _Path:
        """The path one turn later; itself where it is over."""
        seen = await env.reply(task, path.rollout)
        if seen is None:
            return path
        now = path.rollout.then(seen, await act.fork("node", node)(path.rollout, seen))
        said = await act.measure(act.cut(now, self.tokens))
        H = sum(said.entropy) / (said.most or 1.0)
        first = path.first if path.nodes else H
        return replace(path, rollout=now, nodes=(*path.nodes, node), first=first, last=H)

    def _others(self, alive: Sequence[tuple[_Path, _Path]], chance: Random) -> list[_Path]:
        """Who else goes on from before a turn; none from before one that began a path."""
        unsure = [
            before
            for before, now in alive
            for _ in range(self.ways - 1)
            if len(before.nodes) > before.taken
            and chance.random() < self.chance + self.weight * (now.last - now.first)
        ]
        return [replace(path, taken=len(path.nodes)) for path in unsure]
