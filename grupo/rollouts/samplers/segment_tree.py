"""Segment trees: rollouts that share segments of tokens, at whose ends they branch."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.prefixes import finish_and_score


@dataclass(frozen=True)
class _Path:
    """A path through the tree, from the root to a segment.

    Args:
        rollout: The rollout so far, with one turn for each segment of the path.
        node_ids: Node id of each segment; a segment that several paths share has one id.
    """

    rollout: Rollout = Rollout()
    node_ids: tuple[int, ...] = ()

    def beginning(self, num_segments: int) -> "_Path":
        """The first `num_segments` segments of the path."""
        return _Path(Rollout(self.rollout.turns[:num_segments]), self.node_ids[:num_segments])


@component
class SegmentTree:
    """Generates `leaves` rollouts whose first turns are paths through a tree of segments.

    In an environment with several turns, the rollouts go on after their paths.

    A segment is one response. The tree grows in rounds. In the first round, a random number of
    segments are generated, from `branches` to `max_initial_branches`. A later round generates
    `branches` times as many segments in total as the round before, but no more than rollouts are
    missing. The segments are spread evenly over the paths that have not ended, and each of these
    paths is continued by at least one. A path ends when the policy stops, when the context has no
    room left, or at `max_depth` segments.

    If all paths have ended and rollouts are missing, random paths that the policy stopped are
    chosen. Each of them is cut at the start of a random segment, and `branches` new paths continue
    from there. TreePO (arXiv:2508.17445).

    The step value `node` of an action is the node id of its segment. Actions of two rollouts with
    the same node id were generated once.

    Args:
        leaves: Number of rollouts in a group.
        segment_tokens: Length of a segment in tokens.
        max_depth: Largest number of segments in a path.
        branches: Growth factor of a round; also the smallest number of first segments, and the
            number of paths that continue from a cut.
        max_initial_branches: Largest number of segments in the first round.
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
        group = await finish_and_score(task, env, actor, [path.rollout for path in paths])
        return group.with_rollouts(
            with_node_ids(rollout, path.node_ids)
            for rollout, path in zip(group.rollouts, paths, strict=True)
        )

    async def _grow_tree(
        self, actor: Actor, observation: Observation, leaves: int
    ) -> Sequence[_Path]:
        """The `leaves` finished paths of a new tree."""
        new_node_ids = count()
        rng = actor.rng("tree")
        finished: list[_Path] = []
        max_first = max(self.branches, self.max_initial_branches)
        to_extend = [_Path()] * min(leaves, rng.randint(self.branches, max_first))
        while to_extend:
            paths = await asyncio.gather(
                *(self._extend(actor, observation, path, next(new_node_ids)) for path in to_extend)
            )
            unfinished = [path for path in paths if not self._is_finished(path)]
            finished += [path for path in paths if self._is_finished(path)]
            num_missing = leaves - len(finished)
            if unfinished:
                num_branches = min(num_missing, self.branches * len(paths))
                to_extend = _repeat_evenly(unfinished, num_branches)
            else:
                to_extend = self._cut_finished_paths(finished, num_missing, rng)
        return finished

    async def _extend(
        self, actor: Actor, observation: Observation, path: _Path, node_id: int
    ) -> _Path:
        """The path with one more segment; an empty prompt continues the answer."""
        prompt = "" if path.node_ids else observation
        segment_actor = actor.fork("node", node_id).with_stop(max_new_tokens=self.segment_tokens)
        response = await segment_actor(path.rollout, prompt)
        return _Path(path.rollout.append_turn(prompt, response), (*path.node_ids, node_id))

    def _is_finished(self, path: _Path) -> bool:
        num_tokens = len(path.rollout.last_response.items)
        # a path can go on only if its last segment was cut at `segment_tokens`: a shorter truncated
        # segment ran out of context
        can_continue = path.rollout.truncated and num_tokens == self.segment_tokens
        return not can_continue or len(path.node_ids) == self.max_depth

    def _cut_finished_paths(
        self, finished: Sequence[_Path], num_paths: int, rng: Random
    ) -> list[_Path]:
        """Beginnings of random paths that the policy stopped, each `branches` times.

        In all, there are at most `num_paths`. If the policy stopped no path, generation starts
        again at the root.
        """
        stopped_by_policy = [path for path in finished if not path.rollout.truncated]
        to_cut = stopped_by_policy or [_Path()]
        rng.shuffle(to_cut)
        cut = [path.beginning(rng.randrange(max(1, len(path.node_ids)))) for path in to_cut]
        return [path for path in cut for _ in range(self.branches)][:num_paths]


def _repeat_evenly(paths: Sequence[_Path], num_paths: int) -> list[_Path]:
    """`num_paths` copies of the paths, each path at least once, spread evenly.

    Needs `len(paths) <= num_paths`.
    """
    repeats, num_extra = divmod(num_paths, len(paths))
    return [path for i, path in enumerate(paths) for _ in range(repeats + (i < num_extra))]


def with_node_ids(rollout: Rollout, node_ids: Sequence[int]) -> Rollout:
    """The rollout with the step value `node`, the node id of each of its actions.

    Args:
        rollout: The rollout.
        node_ids: Node id of each of its first turns. Further turns have the last of these ids,
            which no other rollout shares.
    """
    ids = tuple(
        float(node_ids[min(i, len(node_ids) - 1)])
        for i, (_, response) in enumerate(rollout.turns)
        for _ in response.items
    )
    return rollout.with_step_values({"node": ids})
