"""Segment trees: rollouts that branch every few hundred tokens."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Observation, Rollout, Task


@dataclass(frozen=True)
class _Path:
    """A path through the tree, with the node id of each of its segments."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()

    @property
    def finish_reason(self) -> str:
        return self.rollout.turns[-1][1].finish_reason

    def ancestor(self, depth: int) -> "_Path":
        """The first `depth` segments of the path."""
        return _Path(Rollout(self.rollout.turns[:depth]), self.nodes[:depth])


@component
class SegmentTree:
    """Generates `leaves` rollouts whose first turn is a tree of segments of `segment_tokens`.

    The tree starts with `branches` to `max_initial_branches` segments. Every path that has not
    ended then continues; `branches` times as many segments as in the round before are spread evenly
    over these paths, while there is room for leaves. A path ends where the policy stops and after
    `max_depth` segments. If all paths have ended and are too few, some that the policy stopped are
    cut at the start of a segment, and continue from there in `branches` paths each.
    TreePO (arXiv:2508.17445).

    The step value `node` is a number per segment: responses with the same number were sampled once.

    Args:
        leaves: Rollouts in a group.
        segment_tokens: Length of a segment in tokens.
        max_depth: Segments of a path at most.
        branches: Growth of the number of segments per round.
        max_initial_branches: Segments at the start at most.
    """

    leaves: PositiveInt = 16
    segment_tokens: PositiveInt = 512
    max_depth: PositiveInt = 14
    branches: PositiveInt = 2
    max_initial_branches: PositiveInt = 8

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        paths = await self._grow_tree(actor, observation, task.group_size or self.leaves)
        rollouts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork("on", i), path.rollout)
                for i, path in enumerate(paths)
            )
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            with_node_ids(rollout, path.nodes)
            for rollout, path in zip(group.rollouts, paths, strict=True)
        )
        return replace(group, rollouts=tuple(annotated))

    async def _grow_tree(
        self, actor: Actor, observation: Observation, leaves: int
    ) -> Sequence[_Path]:
        node_ids = count()
        rng = actor.rng("tree")
        finished: list[_Path] = []
        most = max(self.branches, self.max_initial_branches)
        active = [_Path()] * min(leaves, rng.randint(self.branches, most))
        while active:
            paths = await asyncio.gather(
                *(self._extend(actor, observation, path, next(node_ids)) for path in active)
            )
            going = [path for path in paths if not self._is_finished(path)]
            finished += [path for path in paths if self._is_finished(path)]
            room = leaves - len(finished)
            if going:
                active = _distribute_branches(going, min(room, self.branches * len(paths)))
            else:
                active = self._restart_paths(finished, room, rng)
        return finished

    async def _extend(
        self, actor: Actor, observation: Observation, path: _Path, node: int
    ) -> _Path:
        prompt = "" if path.nodes else observation
        segment = actor.fork("node", node).with_stop(max_new_tokens=self.segment_tokens)
        response = await segment(path.rollout, prompt)
        return _Path(path.rollout.append_turn(prompt, response), (*path.nodes, node))

    def _is_finished(self, path: _Path) -> bool:
        full = len(path.rollout.turns[-1][1].items) == self.segment_tokens
        return path.finish_reason != "length" or not full or len(path.nodes) == self.max_depth

    def _restart_paths(self, finished: Sequence[_Path], room: int, rng: Random) -> list[_Path]:
        """Finished paths, cut at a random segment; empty paths if the policy stopped none."""
        stopped = [path for path in finished if path.finish_reason != "length"] or [_Path()]
        rng.shuffle(stopped)
        cut = [path.ancestor(rng.randrange(max(1, len(path.nodes)))) for path in stopped]
        return [path for path in cut for _ in range(self.branches)][:room]


def _distribute_branches(paths: Sequence[_Path], num_branches: int) -> list[_Path]:
    """`num_branches` paths, each of the given ones at least once and as evenly as possible."""
    each, extra = divmod(max(num_branches, len(paths)), len(paths))
    return [path for i, path in enumerate(paths) for _ in range(each + (i < extra))]


def with_node_ids(leaf: Rollout, nodes: Sequence[int]) -> Rollout:
    """The rollout with its node ids as a step value; later turns belong to the last node."""
    ids = tuple(
        float(nodes[min(i, len(nodes) - 1)])
        for i, (_, response) in enumerate(leaf.turns)
        for _ in response.items
    )
    return replace(leaf, step_values={**leaf.step_values, "node": ids})
