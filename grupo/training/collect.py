"""Collects the groups of a step: draw tasks, generate, score, filter, and refill."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor

from grupo.core.interfaces import Actor, Env, EnvSpec, open_env
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_groups, share_of_rank
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.rollouts.samplers import Sampler
from grupo.storage.fault_injection import kill_point
from grupo.training.slow_calls import slow_calls


@dataclass(frozen=True)
class CollectedGroups:
    """The groups that a step generated, and those of them that it trains on.

    Args:
        sampled_groups: All groups.
        kept_groups: Those that the filter keeps.
        rank_of_rollout: The rank that generated each rollout, by the rollout's index; empty if
            that is not known.
    """

    sampled_groups: tuple[Group, ...]
    kept_groups: tuple[Group, ...]
    rank_of_rollout: tuple[int, ...] = ()

    def rank_of_rows(self, rollout: Tensor) -> Tensor:
        """The rank that generated each row of the batch of the kept groups; 0 if not known.

        Args:
            rollout: The rollout of each row, as in `Batch`, (N,).
        """
        ranks = dict(enumerate(self.rank_of_rollout))
        kept = (ranks.get(kept.index, 0) for group in self.kept_groups for kept in group.rollouts)
        return torch.tensor(list(kept), dtype=torch.long)[rollout]


async def collect_groups(
    method: Method,
    env: EnvSpec,
    actor: Actor,
    tasks: Sequence[Task],
    history: History,
    *,
    num_prompts: int,
    seed: int,
    ranks: Ranks = SINGLE_RANK,
) -> CollectedGroups:
    """Generate groups until `num_prompts` pass the filter or the curriculum returns no tasks.

    Args:
        method: Its curriculum draws tasks, its sampler generates and its filter selects groups.
        env: Replies to actions and scores rollouts.
        actor: The policy's handle for generating.
        tasks: The training tasks.
        history: Earlier groups; the number of tasks drawn is added to it.
        num_prompts: Number of groups to train on.
        seed: Seed of the curriculum.
        ranks: The processes that share the generation; every rank returns the groups of all.
    """
    opened = open_env(env)
    sampled_groups: list[Group] = []
    kept_groups: list[Group] = []
    rank_of_rollout: list[int] = []
    resample_round = 0
    while new_tasks := method.curriculum(
        CurriculumRequest(tasks, history, num_prompts - len(kept_groups), seed, resample_round)
    ):
        history.count_drawn(sum(not task.unfinished for task in new_tasks))
        kill_point("step/tasks_drawn")
        drawn = [history.take_unfinished(history.with_replays(task)) for task in new_tasks]
        own = share_of_rank(ranks, len(drawn))
        sampling_round = _SamplingRound(method.sampler, opened, len(own))
        coroutines = (
            sampling_round.sample_group(i, drawn[i], actor.fork(resample_round, i)) for i in own
        )
        own_groups = dict(zip(own, await asyncio.gather(*coroutines), strict=True))
        generated = exchange_groups(ranks, own_groups, drawn, "rollouts generated", "generate")
        groups = index_rollouts(generated, len(rank_of_rollout))
        for i, group in enumerate(groups):
            rank_of_rollout += [i % ranks.size] * len(group.rollouts)
        kill_point("step/generated")
        sampled_groups += groups
        scored = [drop_failed_rollouts(group) for group in groups]
        kept_groups += method.filter([group for group in scored if group.rollouts])
        kill_point("step/filtered")
        resample_round += 1
    kept = tuple(kept_groups[:num_prompts])
    return CollectedGroups(tuple(sampled_groups), kept, tuple(rank_of_rollout))


def index_rollouts(groups: Sequence[Group], first_index: int = 0) -> list[Group]:
    """The groups, with rollouts whose `index` counts on from `first_index`.

    Filters remove, copy and add rollouts; by the index, a rollout of a batch is found again.
    """
    indices = count(first_index)
    return [
        replace(group, rollouts=tuple(replace(r, index=next(indices)) for r in group.rollouts))
        for group in groups
    ]


def drop_failed_rollouts(group: Group) -> Group:
    """The group without the rollouts that failed; empty if only one of several is left."""
    remaining = tuple(rollout for rollout in group.rollouts if not rollout.error)
    single = len(remaining) < 2 and len(remaining) < len(group.rollouts)
    return replace(group, rollouts=() if single else remaining)


class _SamplingRound:
    """Groups that are generated together; their rewards are released at once, in a fixed order.

    Samplers may generate again after scoring. Without the fixed order, batch composition, and with
    it floating-point rounding, would depend on reward latency. Rewards are released once none is
    being computed and every unfinished group waits for one.
    """

    def __init__(self, sampler: Sampler, env: Env, num_groups: int) -> None:
        self.sampler = sampler
        self.env = env
        self.num_unfinished = num_groups
        self.num_scoring = 0
        self.call_numbers = count()
        # number of the group, number of the call of `score`, and the future that the call awaits
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def sample_group(self, index: int, task: Task, actor: Actor) -> Group:
        try:
            return await self.sampler(task, _RoundEnv(self, index), actor)
        finally:
            self.num_unfinished -= 1
            self._schedule_release()

    async def score(
        self, index: int, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardResult]:
        call_number = next(self.call_numbers)
        self.num_scoring += 1
        try:
            with slow_calls.watch(self.env, "score", task):
                results = await self.env.score(task, rollouts)
        finally:
            self.num_scoring -= 1
            self._schedule_release()
        released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((index, call_number, released))
        await released
        return results

    def _schedule_release(self) -> None:
        # soon, not now: the group that is scored last must not overtake those that wait
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        self.waiting = [call for call in self.waiting if not call[2].cancelled()]
        waiting_groups = {index for index, _, _ in self.waiting}
        if self.num_scoring or len(waiting_groups) < self.num_unfinished:
            return
        for _, _, released in sorted(self.waiting, key=lambda call: call[:2]):
            released.set_result(None)
        self.waiting = []


@dataclass(frozen=True)
class _RoundEnv:
    """The environment of one group in a round: `score` returns when all groups are scored."""

    sampling_round: _SamplingRound
    index: int

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        env = self.sampling_round.env
        with slow_calls.watch(env, "reply", task):
            return await env.reply(task, rollout)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return await self.sampling_round.score(self.index, task, rollouts)
