"""Collection of groups with an actor that logs its requests and an environment with an order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grupo.core.interfaces import EnvSpec
from grupo.core.types import Group, Observation, Response, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.collect.groups import collect_groups

TASKS = [Task(f"task {i}", "") for i in range(12)]


@dataclass(frozen=True)
class NamingActor:
    """Generates the label of its random stream as text, and logs the order of requests."""

    log: list[str]
    label: str = ""

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        self.log.append(self.label)
        await asyncio.sleep(0)
        self.log.append("answered")
        return Response((1,), (0.0,), text=self.label)

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        raise AssertionError

    def fork(self, *label: object) -> "NamingActor":
        return replace(self, label="/".join(map(str, (self.label, *label))))


@dataclass
class OrderedEnv:
    """Scores groups in a given order; a group's rewards are 0 and 1 unless listed.

    A negative reward is a failed rollout.
    """

    rewards: dict[str, Sequence[float]]
    order: Sequence[str] = ()
    scored: dict[str, asyncio.Event] = field(default_factory=dict)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else "go"

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        if "again" not in rollouts[0].text and task.key in self.order:
            place = self.order.index(task.key)
            if place:
                await self._scored(self.order[place - 1]).wait()
            await asyncio.sleep(0)
            self._scored(task.key).set()
        rewards = self.rewards.get(task.key, (0.0, 1.0))
        return [RewardResult(r) if r >= 0 else RewardResult(error="broken") for r in rewards]

    def _scored(self, key: str) -> asyncio.Event:
        return self.scored.setdefault(key, asyncio.Event())


def collect(
    method: Method, env: EnvSpec, history: History, num_groups: int = 2
) -> tuple[CollectedGroups, list[str]]:
    """The collected groups, and the log of the actor."""
    log: list[str] = []
    collected = asyncio.run(
        collect_groups(method, env, NamingActor(log), TASKS, history, num_groups=num_groups, seed=0)
    )
    return collected, log


def task_keys(groups: Sequence[Group]) -> list[str]:
    return [group.task.key for group in groups]


def first_keys(count: int) -> list[str]:
    """The keys of the tasks that the curriculum draws first."""
    collected, _ = collect(Method(sampler=GroupSampler(2)), OrderedEnv({}), History(), count)
    return task_keys(collected.sampled_groups)
