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
    """A rollout in progress with the node id of each of its turns."""

    rollout: Rollout = Rollout()
    nodes: tuple[int, ...] = ()
    inherited_turns: int = 0  # turns copied from the path it branched off
    first_entropy: float = 0.0  # entropy of the path's first turn
    last_entropy: float = 0.0


@component
class EntropyBranching:
    """Generates `leaves` rollouts; new ones branch off where the policy's entropy has risen.

    `initial_rollouts` start from the prompt. The entropy H of a turn is the sum over its first
    `entropy_tokens` tokens, in units of the largest possible entropy of a token. After a turn whose
    H exceeds that of its rollout's first turn by dH, `branches` - 1 paths branch off before the
    turn, each with probability clip(`branch_prob` + `entropy_weight` dH, 0, 1), while there is room
    for leaves. When all paths have ended and are too few, another starts from the prompt.

    The step value `node` is a number per turn: responses with the same number were sampled once.

    ARPO, Dong et al. (arXiv:2507.19849).

    Args:
        leaves: Rollouts in a group.
        initial_rollouts: Rollouts that start from the prompt.
        branches: Paths after a branching, the original included.
        branch_prob: Probability of branching at equal entropy.
        entropy_weight: Increase of that probability per unit of dH.
        entropy_tokens: Tokens of a turn whose entropies are summed.
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
        annotated = (
            with_node_ids(rollout, path.nodes)
            for rollout, path in zip(group.rollouts, paths, strict=True)
        )
        return replace(group, rollouts=tuple(annotated))

    async def _grow_tree(self, task: Task, env: Env, actor: Actor) -> Sequence[_Path]:
        node_ids = count()
        rng = actor.rng("branches")
        leaves = task.group_size or self.leaves
        finished: list[_Path] = []
        active = [_Path()] * min(self.initial_rollouts, leaves)
        while active:
            extended = await asyncio.gather(
                *(self._play_turn(task, env, actor, path, next(node_ids)) for path in active)
            )
            pairs = list(zip(active, extended, strict=True))
            finished += [path for path, longer in pairs if longer is path]
            going = [(path, longer) for path, longer in pairs if longer is not path]
            room = leaves - len(finished) - len(going)
            branches = self._new_branches(going, rng)[:room]
            active = [*(longer for _, longer in going), *branches] or [_Path()] * min(room, 1)
        return finished

    async def _play_turn(self, task: Task, env: Env, actor: Actor, path: _Path, node: int) -> _Path:
        """The path with one more turn, or the path itself where the environment is done."""
        observation = await env.reply(task, path.rollout)
        if observation is None:
            return path
        response = await actor.fork("node", node)(path.rollout, observation)
        rollout = path.rollout.append_turn(observation, response)
        scores = await actor.logprobs(actor.truncate(rollout, self.entropy_tokens))
        entropy = sum(scores.entropy) / (scores.max_entropy or 1.0)
        return replace(
            path,
            rollout=rollout,
            nodes=(*path.nodes, node),
            first_entropy=path.first_entropy if path.nodes else entropy,
            last_entropy=entropy,
        )

    def _new_branches(
        self, paths_before_and_after: Sequence[tuple[_Path, _Path]], rng: Random
    ) -> list[_Path]:
        """Paths that branch off before a turn; none before the turn that began a path."""
        return [
            replace(before, inherited_turns=len(before.nodes))
            for before, after in paths_before_and_after
            for _ in range(self.branches - 1)
            if len(before.nodes) > before.inherited_turns
            and rng.random()
            < self.branch_prob + self.entropy_weight * (after.last_entropy - after.first_entropy)
        ]
