"""One question, one answer, judged by named rewards."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from grupo.envs.asking import ask
from grupo.envs.failures import OnFailure, drop
from grupo.envs.marks import Marked, alone, together
from grupo.errors import Refused
from grupo.piece import piece
from grupo.rewards import Reward, adapt
from grupo.rewards.adapt import each
from grupo.rollout import Observation, Rollout, Task, Verdict

TAKEN = ("failed", "mean", "std")  # numbers of other meaning are logged by these names


@piece
class Part:
    """A reward by name, and how much it counts; a plain function is adapted."""

    name: str
    reward: Reward | Callable[..., Any]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name in TAKEN:
            raise Refused(f"name: {self.name!r}. Allowed: any without '/', but {TAKEN}.")
        if not math.isfinite(self.weight):
            raise Refused(f"weight: {self.weight}. Allowed: a finite number.")
        object.__setattr__(self, "reward", adapt(self.reward))


@piece
class SingleTurn:
    """The task's prompt, one answer, and a reward that is the weighted sum of its parts.

    A verdict's parts are the rewards as they came, before weights; further numbers that a reward
    gave are parts `name/key` of weight 0, sequences of numbers marks `key` of the actions. A part
    that says None does not apply and is left out of the sum. A rollout has failed if any part
    raised, ran out of `time_limit` seconds or gave no finite number, or if none applied; then
    `on_failure` decides.

    >>> from grupo.rewards import Exact
    >>> world = SingleTurn((Part("right", Exact()),))
    >>> asyncio.run(world.score(Task("k", "2 + 2 =", "4"), [Rollout()]))
    [Verdict(reward=0.0, parts={'right': 0.0}, marks={}, failed='')]
    """

    rewards: tuple[Part, ...]
    time_limit: float = 10.0
    on_failure: OnFailure = drop

    def __post_init__(self) -> None:
        names = [part.name for part in self.rewards]
        if not names or len(set(names)) < len(names):
            raise Refused(f"rewards: named {names}. Allowed: at least one, no name twice.")
        if not 0 < self.time_limit < math.inf:
            raise Refused(f"time_limit: {self.time_limit}. Allowed: seconds above 0.")

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        judged = (self._judged(part, task, rollouts) for part in self.rewards)
        by_part = await asyncio.gather(*judged)
        return [
            self._verdict(task, number, rollout, marks)
            for number, (rollout, *marks) in enumerate(zip(rollouts, *by_part, strict=True))
        ]

    async def _judged(
        self, part: Part, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[Marked]:
        """What one part says of every rollout, each with a time limit of its own where it can."""
        judge = each(part.reward)
        if judge is None:
            (said,) = await ask([partial(part.reward, task, rollouts)], self.time_limit)
            return together(said, len(rollouts))
        calls = [partial(judge, task, rollout) for rollout in rollouts]
        return [alone(said) for said in await ask(calls, self.time_limit)]

    def _verdict(
        self, task: Task, number: int, rollout: Rollout, marks: Sequence[Marked]
    ) -> Verdict:
        pairs = list(zip(self.rewards, marks, strict=True))
        applying = [(part, mark) for part, mark in pairs if mark.applies and not mark.failed]
        parts = {part.name: mark.score for part, mark in applying}
        more = {f"{p.name}/{name}": x for p, mark in pairs for name, x in mark.more.items()}
        failed = [f"reward {p.name!r} {mark.failed}" for p, mark in pairs if mark.failed]
        of_actions = {name: x for _, mark in pairs for name, x in mark.marks.items()}
        failed += _of_other_length(of_actions, rollout.length)
        if not failed and not applying:
            failed = ["no reward applies: each said None"]
        if failed:
            why = f"task {task.key}, rollout {number}: {'; '.join(failed)}"
            return self.on_failure(Verdict(parts={**parts, **more}, failed=why))
        reward = sum(part.weight * mark.score for part, mark in applying)
        return Verdict(reward, {**parts, **more}, of_actions)


def _of_other_length(marks: Mapping[str, tuple[float, ...]], length: int) -> list[str]:
    return [
        f"a reward gave {len(x)} numbers by the name {name!r} for {length} actions"
        for name, x in marks.items()
        if len(x) != length
    ]
