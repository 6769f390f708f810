"""A step's groups: ask the curriculum, sample, judge, curate, and ask again for what is missing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.interfaces import Act, Env
from grupo.core.types import Group, Observation, Rollout, Task, Verdict
from grupo.method import Method
from grupo.rollouts.curricula import Ask
from grupo.rollouts.history import History
from grupo.rollouts.samplers import Sampler
from grupo.storage.fault_injection import point


@dataclass(frozen=True)
class Gathered:
    """What a step sampled, and what of it is learned from."""

    sampled: tuple[Group, ...]
    kept: tuple[Group, ...]


async def gather(
    method: Method,
    env: Env,
    act: Act,
    tasks: Sequence[Task],
    history: History,
    *,
    prompts: int,
    seed: int,
) -> Gathered:
    """`prompts` groups to learn from, or as many as the curriculum gives tasks for."""
    sampled: list[Group] = []
    kept: list[Group] = []
    asked = 0
    while new := method.curriculum(Ask(tasks, history, prompts - len(kept), seed, asked)):
        history.ask(len(new))
        point("step/asked")
        together = _Round(method.sample, env, len(new))
        plays = (
            together.play(i, history.recalled(task), act.fork(asked, i))
            for i, task in enumerate(new)
        )
        groups = await asyncio.gather(*plays)
        point("step/sampled")
        sampled += groups
        kept += method.curate([judged(group) for group in groups if len(judged(group).rollouts)])
        point("step/curated")
        asked += 1
    return Gathered(tuple(sampled), tuple(kept[:prompts]))


def judged(group: Group) -> Group:
    """The group without the rollouts that could not be judged; without any if one is left alone."""
    left = tuple(rollout for rollout in group.rollouts if not rollout.failed)
    alone = len(left) < 2 and len(left) < len(group.rollouts)
    return replace(group, rollouts=() if alone else left)


class _Round:
    """Groups that are sampled together: verdicts reach all of them at once, in their order.

    A sampler may ask the policy again after a verdict. Whom the policy answers together would else
    depend on how long the judges took, and its numbers depend on that in their last bits.
    """

    def __init__(self, sample: Sampler, env: Env, count: int) -> None:
        self.sample, self.env, self.playing = sample, env, count
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def play(self, place: int, task: Task, act: Act) -> Group:
        try:
            return await self.sample(task, _World(self, place), act)
        finally:
            self.playing -= 1
            self._go_on()

    async def all_judged(self, place: int) -> None:
        judged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((place, judged))
        self._go_on()
        await judged

    def _go_on(self) -> None:
        # soon, not now: the last to be judged must not come before those that wait
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        if len(self.waiting) >= self.playing:
            for _, judged in sorted(self.waiting, key=lambda one: one[0]):
                if not judged.done():  # it may have been cancelled since
                    judged.set_result(None)
            self.waiting = []


@dataclass(frozen=True)
class _World:
    """The world as one group of a round sees it."""

    together: _Round
    place: int

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return await self.together.env.reply(task, rollout)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        verdicts = await self.together.env.score(task, rollouts)
        await self.together.all_judged(self.place)
        return verdicts
