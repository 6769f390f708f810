"""The policy's likelihood of the reference answer, turn by turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.util.errors import ConfigError


@component
class WithAnswerBelief(SamplerWrapper):
    """Adds to every response the step value `belief`: the answer's likelihood before its turn.

    b = exp(mean over the tokens of the reference answer of log pi), after `answer_prefix` in place
    of the turn. If the context of one turn has no room for the answer, all beliefs of the rollout
    are 0.

    IGPO, Wang et al. (arXiv:2510.14967).

    Args:
        inner: The sampler whose rollouts are annotated.
        answer_prefix: Text that is forced before the reference answer.
    """

    answer_prefix: str = "<answer>"

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a reference answer."""
        for task in tasks:
            if task.reference_answer is None or not str(task.reference_answer):
                raise ConfigError(
                    f"tasks: {task.key} has no reference answer, which beliefs are computed for."
                )

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        annotated = await asyncio.gather(
            *(
                self._add_beliefs(str(task.reference_answer), actor, rollout)
                for rollout in group.rollouts
            )
        )
        return replace(group, rollouts=tuple(annotated))

    async def _add_beliefs(self, answer: str, actor: Actor, rollout: Rollout) -> Rollout:
        starts = _turn_starts(rollout)
        logps = await asyncio.gather(
            *(self._answer_logp(answer, actor, rollout, turn) for turn in starts)
        )
        complete = all(logps)
        beliefs: list[float] = []
        for logp, start, end in zip(logps, starts, [*starts[1:], len(rollout.turns)], strict=True):
            belief = exp(fmean(logp)) if complete else 0.0
            length = sum(len(response.items) for _, response in rollout.turns[start:end])
            beliefs += [belief] * length
        return replace(rollout, step_values={**rollout.step_values, "belief": tuple(beliefs)})

    async def _answer_logp(
        self, answer: str, actor: Actor, rollout: Rollout, turn: int
    ) -> tuple[float, ...]:
        """Log-probability of each token of the answer in place of a turn."""
        before = replace(rollout, turns=rollout.turns[:turn])
        observation = rollout.turns[turn][0]
        prefix = await actor.prefill_forced(before, observation, self.answer_prefix)
        prompted = before.append_turn(observation, prefix)
        forced = await actor.prefill_forced(prompted, "", answer)
        return (await actor.logprobs(prompted.append_turn("", forced))).logp


def _turn_starts(rollout: Rollout) -> list[int]:
    """Indices of the responses that begin a turn: those after an observation."""
    return [
        i
        for i, (observation, response) in enumerate(rollout.turns)
        if response.items and (observation or not i)
    ]
