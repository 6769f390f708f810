"""What the policy believes of the true answer, turn by turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.interfaces import Act, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import Around


@piece
class WithBelief(Around):
    """The inner sampler's group, every action marked with the `belief` that its turn began with.

    b = exp(mean over the tokens of the task's answer of log pi), had the policy said `lead` and the
    answer then. Where a context has no room for that, all beliefs of the rollout are 0.

    IGPO, Wang et al. (arXiv:2510.14967).
    """

    lead: str = "<answer>"

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks without an answer."""
        for task in tasks:
            if task.answer is None or not str(task.answer):
                raise Refused(f"tasks: {task.key} has no answer, which beliefs are of.")

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group = await self.inner(task, env, act)
        told = (self._told(str(task.answer), act, rollout) for rollout in group.rollouts)
        return replace(group, rollouts=tuple(await asyncio.gather(*told)))

    async def _told(self, answer: str, act: Act, rollout: Rollout) -> Rollout:
        starts = _starts(rollout)
        logp = await asyncio.gather(*(self._logp(answer, act, rollout, i) for i in starts))
        whole = all(logp)
        beliefs = [exp(fmean(some)) if whole else 0.0 for some in logp]
        ends = [*starts[1:], len(rollout.turns)]
        lengths = [
            sum(len(action.parts) for _, action in rollout.turns[a:b])
            for a, b in zip(starts, ends, strict=True)
        ]
        marks = tuple(b for b, n in zip(beliefs, lengths, strict=True) for _ in range(n))
        return replace(rollout, marks={**rollout.marks, "belief": marks})

    async def _logp(self, answer: str, act: Act, rollout: Rollout, turn: int) -> tuple[float, ...]:
        """Of each token of the answer, had it been said in place of that turn."""
        before, seen = replace(rollout, turns=rollout.turns[:turn]), rollout.turns[turn][0]
        led = before.then(seen, await act.force(before, seen, self.lead))
        return (await act.measure(led.then("", await act.force(led, "", answer)))).logp


def _starts(rollout: Rollout) -> list[int]:
    """Where turns begin: where the world speaks."""
    turns = enumerate(rollout.turns)
    return [i for i, (seen, action) in turns if action.parts and (seen or not i)]
