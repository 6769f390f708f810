"""A step's groups: ask the curriculum, sample, judge, curate, and ask again for what is missing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.curricula import Ask
from grupo.history import History
from grupo.method import Method
from grupo.rollout import Act, Env, Group, Task
from grupo.storage.faults import point


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
        plays = (method.sample(task, env, act.fork(asked, i)) for i, task in enumerate(new))
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
