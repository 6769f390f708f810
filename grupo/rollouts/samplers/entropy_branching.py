"""Entropy branching: rollouts branch after observations that raise the policy's entropy."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.segment_tree import with_node_ids


@dataclass(frozen=True)
class _Path:
    """A rollout in progress, which is a path through the tree from the root to a node.

    A node is a turn that was sampled once; several paths may share it.
    """

    rollout: Rollout = Rollout()
    node_ids: tuple[int, ...] = ()  # one for each turn
    num_inherited_turns: int = 0  # turns that the path shares with the path it branched off
    first_entropy: float = 0.0  # entropy of the path's first turn
    last_entropy: float = 0.0  # entropy of the path's last turn


@component
class EntropyBranching:
    """Generates a tree of `leaves` rollouts, which branches where the policy's entropy has risen.

    `initial_rollouts` paths start from the prompt. The entropy H of a turn is the sum of the
    entropies of its first `entropy_tokens` tokens, divided by the largest possible entropy of a
    token. dH is the entropy of the turn minus the entropy of the path's first turn. Before each
    later turn, up to `branches` - 1 new paths branch off, each with probability
    clip(`branch_prob` + `entropy_weight` dH, 0, 1). No path branches off once the tree has
    `leaves` paths. If all paths have ended and there are fewer than `leaves`, another path starts
    from the prompt.

    The step value `node` is the node id of a turn. Turns with the same node id were sampled once.

    ARPO, Dong et al. (arXiv:2507.19849).

    Args:
        leaves: Number of rollouts in a group.
        initial_rollouts: Number of paths that start from the prompt at first.
        branches: Largest number of paths after a branching, the original path included.
        branch_prob: Probability of a new path if dH is 0.
        entropy_weight: Increase of the probability of a new path per unit of dH.
        entropy_tokens: Number of first tokens of a turn whose entropies are summed.
    """

    leaves: PositiveInt = 16
    initial_rollouts: PositiveInt = 8
    branches: PositiveInt = 2
    branch_prob: NumberOrSchedule = 0.5
    entropy_weight: NumberOrSchedule = 0.2
    entropy_tokens: PositiveInt = 20

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.leaves

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        paths = await self._grow_tree(task, env, actor)
        group = await score_group(task, env, [path.rollout for path in paths])
        return group.with_rollouts(
            with_node_ids(rollout, path.node_ids)
            for rollout, path in zip(group.rollouts, paths, strict=True)
        )

    async def _grow_tree(self, task: Task, env: Env, actor: Actor) -> Sequence[_Path]:
        """The finished paths of a new tree, one for each rollout of the group."""
        new_node_ids = count()
        rng = actor.rng("branches")
        num_leaves = task.group_size or self.leaves
        finished: list[_Path] = []
        active = [_Path()] * min(self.initial_rollouts, num_leaves)
        while active:
            extended = await asyncio.gather(
                *(self._extend(task, env, actor, path, next(new_node_ids)) for path in active)
            )
            before_and_after = list(zip(active, extended, strict=True))
            finished += [before for before, after in before_and_after if after is before]
            continued = [pair for pair in before_and_after if pair[1] is not pair[0]]
            num_missing = num_leaves - len(finished) - len(continued)
            branches = self._new_branches(continued, rng)[:num_missing]
            active = [*(after for _, after in continued), *branches]
            active = active or [_Path()] * min(num_missing, 1)
        return finished

    async def _extend(self, task: Task, env: Env, actor: Actor, path: _Path, node_id: int) -> _Path:
        """The path with one more turn, or the path itself if the environment ends the rollout."""
        observation = await env.reply(task, path.rollout)
        if observation is None:
            return path
        response = await actor.fork("node", node_id)(path.rollout, observation)
        rollout = path.rollout.append_turn(observation, response)
        scores = await actor.logprobs(actor.truncate(rollout, self.entropy_tokens))
        entropy = sum(scores.entropy) / (scores.max_entropy or 1.0)
        return replace(
            path,
            rollout=rollout,
            node_ids=(*path.node_ids, node_id),
            first_entropy=path.first_entropy if path.node_ids else entropy,
            last_entropy=entropy,
        )

    def _new_branches(
        self, before_and_after: Sequence[tuple[_Path, _Path]], rng: Random
    ) -> list[_Path]:
        """New paths that branch off before the last turn of a path, unless the path began there."""
        return [
            replace(before, num_inherited_turns=len(before.node_ids))
            for before, after in before_and_after
            for _ in range(self.branches - 1)
            if len(before.node_ids) > before.num_inherited_turns
            and rng.random()
            < self.branch_prob + self.entropy_weight * (after.last_entropy - after.first_entropy)
        ]
