"""Named rewards, and what they make of the rollouts of a group."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task, Verdict
from grupo.envs.on_failure import OnFailure
from grupo.envs.reward_parsing import Marked, alone, together
from grupo.envs.timeouts import ask
from grupo.rewards import Reward, adapt
from grupo.rewards.reward_function import each

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


def check_time(time_limit: float) -> None:
    """Refuse a time limit that is none."""
    if not 0 < time_limit < math.inf:
        raise Refused(f"time_limit: {time_limit}. Allowed: seconds above 0.")


async def judge(
    rewards: Sequence[Part], task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> list[Verdict]:
    """The weighted sum of what every reward says of each rollout, or why one has failed.

    No reward may take longer than `time_limit` seconds.
    """
    by_part = await asyncio.gather(*(_judged(part, task, rollouts, time_limit) for part in rewards))
    return [
        _verdict(rewards, rollout, marks)
        for rollout, *marks in zip(rollouts, *by_part, strict=True)
    ]


def settled(task: Task, verdicts: Iterable[Verdict], on_failure: OnFailure) -> list[Verdict]:
    """The verdicts on a task's rollouts, those that failed by name and as `on_failure` decides."""
    return [
        on_failure(replace(v, failed=f"task {task.key}, rollout {number}: {v.failed}"))
        if v.failed
        else v
        for number, v in enumerate(verdicts)
    ]


async def _judged(
    part: Part, task: Task, rollouts: Sequence[Rollout], time_limit: float
) -> Sequence[Marked]:
    """What one part says of every rollout, each with a time limit of its own where it can."""
    judge = each(part.reward)
    if judge is None:
        (said,) = await ask([partial(part.reward, task, rollouts)], time_limit)
        return together(said, len(rollouts))
    calls = [partial(judge, task, rollout) for rollout in rollouts]
    return [alone(said) for said in await ask(calls, time_limit)]


def _verdict(rewards: Sequence[Part], rollout: Rollout, marks: Sequence[Marked]) -> Verdict:
    pairs = list(zip(rewards, marks, strict=True))
    applying = [(part, mark) for part, mark in pairs if mark.applies and not mark.failed]
    parts = {part.name: mark.score for part, mark in applying}
    more = {f"{p.name}/{name}": x for p, mark in pairs for name, x in mark.more.items()}
    failed = [f"reward {p.name!r} {mark.failed}" for p, mark in pairs if mark.failed]
    of_actions = {name: x for _, mark in pairs for name, x in mark.marks.items()}
    failed += _of_other_length(of_actions, rollout.length)
    if not failed and not applying:
        failed = ["no reward applies: each said None"]
    if failed:
        return Verdict(parts={**parts, **more}, failed="; ".join(failed))
    reward = sum(part.weight * mark.score for part, mark in applying)
    return Verdict(reward, {**parts, **more}, of_actions)


def _of_other_length(marks: Mapping[str, tuple[float, ...]], length: int) -> list[str]:
    return [
        f"a reward gave {len(x)} numbers by the name {name!r} for {length} actions"
        for name, x in marks.items()
        if len(x) != length
    ]
