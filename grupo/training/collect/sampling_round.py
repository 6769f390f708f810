"""A sampling round of a step: groups that are generated together."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from grupo.core.interfaces import Actor, Env, EnvWithLostReplies
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task
from grupo.rollouts.samplers import Sampler
from grupo.training.collect.slow_calls import slow_calls
from grupo.training.collect.unfinished_groups import GroupInProgress, GroupRecord, RolloutTokenLimit
from grupo.util.event_loop import running_rollout_loop


class _WaitingCall(NamedTuple):
    """A call of `score` that has its rewards and waits until they are released."""

    group_index: int
    call_number: int  # among the calls of all groups
    released: asyncio.Future[None]


class SamplingRound:
    """Groups that are generated together and receive their rewards together.

    Samplers may generate again after scoring. The latency of rewards must not decide which requests
    the engine batches together, because the batches decide the floating-point rounding. Rewards are
    therefore held until no call of `score` runs and every unfinished group waits for rewards or for
    the next step. The groups then continue in a fixed order.

    An unfinished group is in one of three states. A running group waits for replies of the engine,
    or for observations or rewards of the environment. A group that waits for scores has received
    rewards that the round holds. A group that is paused at the limit has rollouts that reached the
    token limit, and no others that run. When no group runs, the held rewards are released and the
    groups that wait for scores run again. If no group waits for scores either, the paused groups
    end as `GroupInProgress`.

    Args:
        sampler: Generates the groups.
        env: Replies to responses and scores rollouts.
        groups: The groups to begin or to continue.
        token_limit: Limits the tokens that a rollout generates in this step. A rollout at its limit
            waits for a later step, which continues its group. None if all groups end in this step.
    """

    def __init__(
        self,
        sampler: Sampler,
        env: Env,
        groups: Sequence[GroupInProgress],
        token_limit: RolloutTokenLimit | None = None,
    ) -> None:
        self.sampler = sampler
        self.env = env
        self.groups = groups
        # the values that each group received, from which a later step reruns the sampler; None
        # without a token limit
        self.records: list[GroupRecord | None] = [None] * len(groups)
        if token_limit:
            self.records = [
                GroupRecord(group, token_limit.max_tokens(group.first_step), self._schedule_release)
                for group in groups
            ]
        self.sampler_calls: list[asyncio.Task[Group | GroupInProgress]] = []
        self.paused: set[int] = set()  # indices of groups that are continued in the next step
        self.num_scoring = 0  # number of calls of `score` that run
        self.score_call_numbers = count()
        self.waiting: list[_WaitingCall] = []
        self.release_task: asyncio.Task[None] | None = None  # runs `_release_when_idle`

    async def generate(self, actor: Actor, seed: int) -> list[Group | GroupInProgress]:
        """Return each group that has ended, and each unfinished group as a `GroupInProgress`.

        Args:
            actor: The policy's handle for generating.
            seed: Seed of the run.
        """
        actors = [
            group.actor(actor, seed, record)
            for group, record in zip(self.groups, self.records, strict=True)
        ]
        self.sampler_calls = [
            asyncio.create_task(self._sample_group(index, group.task, actors[index]))
            for index, group in enumerate(self.groups)
        ]
        return await asyncio.gather(*self.sampler_calls)

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

        async def reply_of_env() -> Observation | None:
            with slow_calls.watch(self.env, "reply", task):
                return await self.env.reply(task, rollout)

        def is_lost() -> bool:
            """Whether a reply to the rollout was lost; a later step requests it again."""
            if not isinstance(self.env, EnvWithLostReplies):
                return False
            return self.env.lost_reply_cause(task, rollout) != ""

        record = self.records[index]
        if record is None:
            return await reply_of_env()
        return await record.observation(rollout, reply_of_env, is_lost)

    async def score(
        self, index: int, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardResult]:
        """Score rollouts of a group, and return when the rewards of the round are released."""

        async def score_and_wait() -> Sequence[RewardResult]:
            call_number = next(self.score_call_numbers)
            self.num_scoring += 1
            try:
                with slow_calls.watch(self.env, "score", task):
                    results = await self.env.score(task, rollouts)
            finally:
                self.num_scoring -= 1
                self._schedule_release()
            released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(_WaitingCall(index, call_number, released))
            await released
            return results

        record = self.records[index]
        return await (
            record.scores_or_call(rollouts, score_and_wait) if record else score_and_wait()
        )

    def _schedule_release(self) -> None:
        """Schedule a call of `_release`.

        The event loop runs it after the current coroutine: a call of `score` that has received its
        rewards then waits in `waiting`.
        """
        loop = asyncio.get_running_loop()
        if not any(self.records):
            loop.call_soon(self._release)
        elif self.release_task is None:
            self.release_task = loop.create_task(self._release_when_idle())

    async def _release_when_idle(self) -> None:
        # A coroutine that has received a reply requests the next one when the loop resumes it. The
        # release waits for all such coroutines, so that no group counts as paused too early.
        await running_rollout_loop().wait_until_idle()
        self.release_task = None
        self._release()

    def _release(self) -> None:
        """Release the rewards of all groups that wait for scores.

        If no group waits for scores, the paused groups end. While a group runs, the method does
        nothing: the other groups wait for this group.
        """
        self.waiting = [call for call in self.waiting if not call.released.cancelled()]
        unfinished = {index for index, call in enumerate(self.sampler_calls) if not call.done()}
        not_waiting = unfinished - {call.group_index for call in self.waiting}
        paused = {
            i for i in not_waiting if (record := self.records[i]) and record.replies.is_paused
        }
        if self.num_scoring or not_waiting - paused:
            return
        for call in sorted(self.waiting, key=lambda call: (call.group_index, call.call_number)):
            call.released.set_result(None)
        if not self.waiting:  # no group can continue in this step
            self.paused = paused
            for index in paused:
                self.sampler_calls[index].cancel()
        self.waiting = []


@dataclass(frozen=True)
class _OrderedScoringEnv:
    """The environment as the sampler of one group calls it: every call goes through the round."""

    sampling_round: SamplingRound
    index: int

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return await self.sampling_round.reply(self.index, task, rollout)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        return await self.sampling_round.score(self.index, task, rollouts)
