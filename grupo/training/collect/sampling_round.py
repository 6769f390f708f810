"""A round of sampling: groups that are generated together."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from grupo.core.interfaces import Actor, Env, EnvWithLostReplies
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task
from grupo.rollouts.samplers import Sampler
from grupo.training.collect.slow_calls import slow_calls
from grupo.training.collect.unfinished_groups import GroupInProgress, GroupRecord, StepTokenLimit
from grupo.util.event_loop import running_rollout_loop


class SamplingRound:
    """Groups that are generated together; their rewards are released at once, in a fixed order.

    Samplers may generate again after scoring. Without the fixed order, batch composition, and with
    it floating-point rounding, would depend on reward latency. Rewards are released once none is
    being computed and every unfinished group waits for one, or for the next step.

    Args:
        sampler: Generates the groups.
        env: Replies to responses and scores rollouts.
        groups: The groups to begin or to continue.
        token_limit: Maximum number of tokens of a rollout in this step; None if there is none.
    """

    def __init__(
        self,
        sampler: Sampler,
        env: Env,
        groups: Sequence[GroupInProgress],
        token_limit: StepTokenLimit | None = None,
    ) -> None:
        self.sampler = sampler
        self.env = env
        self.groups = groups
        self.records: list[GroupRecord | None] = [None] * len(groups)
        if token_limit:
            self.records = [
                GroupRecord(group, token_limit.tokens(group.first_step), self._schedule_release)
                for group in groups
            ]
        self.calls: list[asyncio.Task[Group | GroupInProgress]] = []
        self.paused: set[int] = set()  # groups that are continued in the next step
        self.num_scoring = 0
        self.call_numbers = count()
        # number of the group, number of the call of `score`, and the future that the call awaits
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.release_task: asyncio.Task[None] | None = None

    async def generate(self, actor: Actor, seed: int) -> list[Group | GroupInProgress]:
        """The groups; those that are paused until the next step are unfinished groups.

        Args:
            actor: The policy's handle for generating.
            seed: Seed of the run.
        """
        actors = [g.actor(actor, seed, r) for g, r in zip(self.groups, self.records, strict=True)]
        self.calls = [
            asyncio.create_task(self._sample_group(index, group.task, actors[index]))
            for index, group in enumerate(self.groups)
        ]
        return await asyncio.gather(*self.calls)

    async def _sample_group(self, index: int, task: Task, actor: Actor) -> Group | GroupInProgress:
        try:
            return await self.sampler(task, _OrderedScoringEnv(self, index), actor)
        except asyncio.CancelledError:
            record = self.records[index]
            if record is None or index not in self.paused:
                raise
            return record.unfinished_group()
        finally:
            self._schedule_release()

    async def reply(self, index: int, task: Task, rollout: Rollout) -> Observation | None:
        """The environment's next observation of a rollout of a group."""

        async def reply() -> Observation | None:
            with slow_calls.watch(self.env, "reply", task):
                return await self.env.reply(task, rollout)

        def is_lost() -> bool:
            if not isinstance(self.env, EnvWithLostReplies):
                return False
            return self.env.lost_reply_cause(task, rollout) != ""

        record = self.records[index]
        return await (record.observation(rollout, reply, is_lost) if record else reply())

    async def score(
        self, index: int, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardResult]:
        """The scores of rollouts of a group, once all groups that can be are scored."""

        async def score() -> Sequence[RewardResult]:
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

        record = self.records[index]
        return await (record.scored(rollouts, score) if record else score())

    def _schedule_release(self) -> None:
        # soon, not now: the group that is scored last must not overtake those that wait
        loop = asyncio.get_running_loop()
        if not any(self.records):
            loop.call_soon(self._release)
        elif self.release_task is None:
            self.release_task = loop.create_task(self._release_when_idle())

    async def _release_when_idle(self) -> None:
        # a coroutine that has just received a reply has not asked for its next one before
        await running_rollout_loop().wait_until_idle()
        self.release_task = None
        self._release()

    def _release(self) -> None:
        self.waiting = [call for call in self.waiting if not call[2].cancelled()]
        unfinished = {index for index, call in enumerate(self.calls) if not call.done()}
        unready = unfinished - {index for index, _, _ in self.waiting}
        paused = {i for i in unready if (record := self.records[i]) and record.replies.is_paused}
        if self.num_scoring or unready - paused:
            return
        for _, _, released in sorted(self.waiting, key=lambda call: call[:2]):
            released.set_result(None)
        if not self.waiting:
            self.paused = paused
            for index in paused:
                self.calls[index].cancel()
        self.waiting = []


@dataclass(frozen=True)
class _OrderedScoringEnv:
    """The environment of one group in a round: `score` returns when all groups are scored."""

    sampling_round: SamplingRound
    index: int

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return await self.sampling_round.reply(self.index, task, rollout)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return await self.sampling_round.score(self.index, task, rollouts)
