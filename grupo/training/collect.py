"""A step's groups: ask the curriculum, sample, judge, curate, and ask again for what is missing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.rollouts.samplers import Sampler
from grupo.storage.fault_injection import kill_point


@dataclass(frozen=True)
class CollectedGroups:
    """What a step sampled, and what of it is learned from."""

    sampled_groups: tuple[Group, ...]
    kept_groups: tuple[Group, ...]


async def collect_groups(
    method: Method,
    env: Env,
    actor: Actor,
    tasks: Sequence[Task],
    history: History,
    *,
    num_prompts: int,
    seed: int,
) -> CollectedGroups:
    """`prompts` groups to learn from, or as many as the curriculum gives tasks for."""
    sampled: list[Group] = []
    kept: list[Group] = []
    asked = 0
    while new := method.curriculum(
        CurriculumRequest(tasks, history, num_prompts - len(kept), seed, asked)
    ):
        history.count_drawn(len(new))
        kill_point("step/asked")
        together = _SamplingRound(method.sampler, env, len(new))
        plays = (
            together.sample_group(i, history.with_replays(task), actor.fork(asked, i))
            for i, task in enumerate(new)
        )
        groups = await asyncio.gather(*plays)
        kill_point("step/sampled")
        sampled += groups
        kept += method.filter(
            [
                drop_failed_rollouts(group)
                for group in groups
                if len(drop_failed_rollouts(group).rollouts)
            ]
        )
        kill_point("step/curated")
        asked += 1
    return CollectedGroups(tuple(sampled), tuple(kept[:num_prompts]))


def drop_failed_rollouts(group: Group) -> Group:
    """The group without the rollouts that could not be judged; without any if one is left alone."""
    left = tuple(rollout for rollout in group.rollouts if not rollout.error)
    alone = len(left) < 2 and len(left) < len(group.rollouts)
    return replace(group, rollouts=() if alone else left)


class _SamplingRound:
    """Groups that are sampled together: verdicts reach all of them at once, in their order.

    A sampler may ask the policy again after a verdict. Whom the policy answers together would else
    depend on how long the judges took, and its numbers depend on that in their last bits.
    """

    def __init__(self, sample: Sampler, env: Env, count: int) -> None:
        self.sampler, self.env, self.num_active = sample, env, count
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def sample_group(self, index: int, task: Task, actor: Actor) -> Group:
        try:
            return await self.sampler(task, _RoundEnv(self, index), actor)
        finally:
            self.num_active -= 1
            self._schedule_release()

    async def wait_until_all_scored(self, index: int) -> None:
        judged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((index, judged))
        self._schedule_release()
        await judged

    def _schedule_release(self) -> None:
        # soon, not now: the last to be judged must not come before those that wait
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        if len(self.waiting) >= self.num_active:
            for _, judged in sorted(self.waiting, key=lambda one: one[0]):
                if not judged.done():  # it may have been cancelled since
                    judged.set_result(None)
            self.waiting = []


@dataclass(frozen=True)
class _RoundEnv:
    """The world as one group of a round sees it."""

    sampling_round: _SamplingRound
    index: int

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return await self.sampling_round.env.reply(task, rollout)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        verdicts = await self.sampling_round.env.score(task, rollouts)
        await self.sampling_round.wait_until_all_scored(self.index)
        return verdicts
