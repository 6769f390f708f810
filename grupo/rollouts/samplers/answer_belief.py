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
    """Adds the step value `belief`: the likelihood of the reference answer before each turn.

    To measure the belief before a turn, `answer_prefix` and the reference answer take the place of
    the turn. The belief is exp(mean log pi) over the tokens of the answer. If the context of any
    turn has no room for the answer, all beliefs of the rollout are 0.

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
                    f"tasks: {task.key} has no reference answer. Allowed: tasks with a reference"
                    " answer, because WithAnswerBelief measures its likelihood."
                )

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        annotated = await asyncio.gather(
            *(
                self._add_beliefs(str(task.reference_answer), actor, rollout)
                for rollout in group.rollouts
            )
        )
        return group.with_rollouts(annotated)

    async def _add_beliefs(self, answer: str, actor: Actor, rollout: Rollout) -> Rollout:
        starts = _turn_starts(rollout)
        ends = [*starts[1:], len(rollout.turns)]
        answer_logps = await asyncio.gather(
            *(self._answer_logp(answer, actor, rollout, start) for start in starts)
        )
        all_have_room = all(answer_logps)
        beliefs: list[float] = []
        for logp, start, end in zip(answer_logps, starts, ends, strict=True):
            belief = exp(fmean(logp)) if all_have_room else 0.0
            length = sum(len(response.items) for _, response in rollout.turns[start:end])
            beliefs += [belief] * length
        return rollout.with_step_values({"belief": tuple(beliefs)})

    async def _answer_logp(
        self, answer: str, actor: Actor, rollout: Rollout, turn: int
    ) -> tuple[float, ...]:
        """Log-probability of each token of the answer in place of a turn; () without room."""
        before = replace(rollout, turns=rollout.turns[:turn])
        observation = rollout.turns[turn][0]
        forced_prefix = await actor.prefill_forced(before, observation, self.answer_prefix)
        with_prefix = before.append_turn(observation, forced_prefix)
        forced_answer = await actor.prefill_forced(with_prefix, "", answer)
        return (await actor.logprobs(with_prefix.append_turn("", forced_answer))).logp


def _turn_starts(rollout: Rollout) -> list[int]:
    """Indices of the responses that begin a turn: the first one, and those after an observation."""
    return [
        i
        for i, (observation, response) in enumerate(rollout.turns)
        if response.items and (observation or not i)
    ]
