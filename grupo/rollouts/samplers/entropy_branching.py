"""Rollouts that branch where what the world said left the policy less sure."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.segment_tree import with_node_ids


@dataclass(frozen=True)
class _Path:
    """A rollout so far, and the number of each of its turns."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()
    inherited_turns: int = 0  # turns that it took over from another
    first_entropy: float = 0.0  # how unsure its first turn was
    last_entropy: float = 0.0


@component
class EntropyBranching:
    """`leaves` rollouts: `first` begin at once, others go on from where one of these is less sure.

    H of a turn is the sum of the entropies of its first `tokens` tokens, the entropy of a token
    that may be any being 1. After a turn whose H is dH above that of its rollout's first, `branches` -
    1 others go on from before it, each by a chance of clip(`chance` + `weight` dH, 0, 1), as far as
    there is room for leaves. Where all rollouts are over and too few, one more begins.

    Actions are marked `node`: where their numbers are the same, they were drawn once.

    ARPO, Dong et al. (arXiv:2507.19849).
    """

    leaves: int = 16
    initial_rollouts: int = 8
    branches: int = 2
    branch_prob: float = 0.5
    entropy_weight: float = 0.2
    entropy_tokens: int = 20

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        paths = await self._grow_tree(task, env, actor)
        group = await score_group(task, env, [path.rollout for path in paths])
        pairs = zip(group.rollouts, paths, strict=True)
        return replace(group, rollouts=tuple(with_node_ids(r, p.nodes) for r, p in pairs))

    async def _grow_tree(self, task: Task, env: Env, actor: Actor) -> Sequence[_Path]:
        number, chance, leaves = count(), actor.rng("branches"), task.group_size or self.leaves
        over: list[_Path] = []
        going = [_Path()] * min(self.initial_rollouts, leaves)
        while going:
            turns = (self._play_turn(task, env, actor, path, next(number)) for path in going)
            pairs = list(zip(going, await asyncio.gather(*turns), strict=True))
            over += [path for path, now in pairs if now is path]
            alive = [(path, now) for path, now in pairs if now is not path]
            room = leaves - len(over) - len(alive)
            others = self._new_branches(alive, chance)[:room]
            going = [*(now for _, now in alive), *others] or [_Path()] * min(room, 1)
        return over

    async def _play_turn(self, task: Task, env: Env, actor: Actor, path: _Path, node: int) -> _Path:
        """The path one turn later; itself where it is over."""
        seen = await env.reply(task, path.rollout)
        if seen is None:
            return path
        now = path.rollout.append_turn(seen, await actor.fork("node", node)(path.rollout, seen))
        said = await actor.score(actor.truncate(now, self.entropy_tokens))
        H = sum(said.entropy) / (said.max_entropy or 1.0)
        first = path.first_entropy if path.nodes else H
        return replace(path, rollout=now, nodes=(*path.nodes, node), first=first, last=H)

    def _new_branches(
        self, paths_before_and_after: Sequence[tuple[_Path, _Path]], rng: Random
    ) -> list[_Path]:
        """Who else goes on from before a turn; none from before one that began a path."""
        unsure = [
            before
            for before, now in paths_before_and_after
            for _ in range(self.branches - 1)
            if len(before.nodes) > before.inherited_turns
            and rng.random()
            < self.branch_prob + self.entropy_weight * (now.last_entropy - now.first_entropy)
        ]
        return [replace(path, inherited_turns=len(path.nodes)) for path in unsure]
