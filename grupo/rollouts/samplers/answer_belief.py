"""What the policy believes of the true answer, turn by turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithAnswerBelief(SamplerWrapper):
    """The inner sampler's group, every action marked with the `belief` that its turn began with.

    b = exp(mean over the tokens of the task's answer of log pi), had the policy said `lead` and the
    answer then. Where a context has no room for that, all beliefs of the rollout are 0.

    IGPO, Wang et al. (arXiv:2510.14967).
    """

    answer_prefix: str = "<answer>"

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks without an answer."""
        for task in tasks:
            if task.reference_answer is None or not str(task.reference_answer):
                raise ConfigError(f"tasks: {task.key} has no answer, which beliefs are of.")

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        told = (
            self._add_beliefs(str(task.reference_answer), actor, rollout)
            for rollout in group.rollouts
        )
        return replace(group, rollouts=tuple(await asyncio.gather(*told)))

    async def _add_beliefs(self, answer: str, actor: Actor, rollout: Rollout) -> Rollout:
        starts = _turn_starts(rollout)
        logp = await asyncio.gather(*(self._answer_logp(answer, actor, rollout, i) for i in starts))
        whole = all(logp)
        beliefs = [exp(fmean(some)) if whole else 0.0 for some in logp]
        ends = [*starts[1:], len(rollout.turns)]
        lengths = [
            sum(len(action.items) for _, action in rollout.turns[a:b])
            for a, b in zip(starts, ends, strict=True)
        ]
        marks = tuple(b for b, n in zip(beliefs, lengths, strict=True) for _ in range(n))
        return replace(rollout, step_values={**rollout.step_values, "belief": marks})

    async def _answer_logp(
        self, answer: str, actor: Actor, rollout: Rollout, turn: int
    ) -> tuple[float, ...]:
        """Of each token of the answer, had it been said in place of that turn."""
        before, seen = replace(rollout, turns=rollout.turns[:turn]), rollout.turns[turn][0]
        led = before.append_turn(seen, await actor.prefill_forced(before, seen, self.answer_prefix))
        return (
            await actor.score(led.append_turn("", await actor.prefill_forced(led, "", answer)))
        ).logp


def _turn_starts(rollout: Rollout) -> list[int]:
    """Where turns begin: where the world speaks."""
    turns = enumerate(rollout.turns)
    return [i for i, (seen, action) in turns if action.items and (seen or not i)]
