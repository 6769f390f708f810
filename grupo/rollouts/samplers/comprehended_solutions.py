"""Adds solutions of teachers to a group, chosen by how well the policy comprehends them.

The component is the `build_prompts` of a `RescueAttempt` in a `Rescue` sampler. Such a builder
returns `RescuePrompts`: prompts that the policy answers, rollouts that are ready, or both.
"""

import asyncio
from math import exp
from statistics import fmean

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, score_group
from grupo.core.ranges import PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.demonstrations import demonstration_rollout
from grupo.rollouts.samplers.rescue import RescuePrompts


@component
class ComprehendedSolutions:
    """Adds the solutions that the policy comprehends best to a group.

    The policy is given the prompt and the reasoning of a solution. The comprehension is the mean
    probability that it then gives to the tokens of the reference answer. The reasoning is the text
    before the last occurrence of the answer. Each added solution becomes a scored rollout with the
    source "expert", whose response is marked as not sampled.

    AMPO, Yuan et al. (arXiv:2510.02227).

    Args:
        columns: Columns of the solutions, one for each teacher. The data set must have these
            columns; a single task may lack some.
        count: Largest number of solutions that are added.
    """

    columns: tuple[str, ...] = ("solution",)
    count: PositiveInt = 2

    @property
    def requires(self) -> Requires:
        return Requires(columns=self.columns)

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        task = group.task
        texts = [str(task.columns[name]) for name in self.columns if name in task.columns]
        if not texts:
            return RescuePrompts()
        comprehensions = await asyncio.gather(
            *(comprehension(task, text, env, actor) for text in texts)
        )
        best_first = sorted(range(len(texts)), key=lambda i: -comprehensions[i])
        rollouts = [
            await demonstration_rollout(task, env, actor, texts[i], source="expert")
            for i in best_first[: self.count]
        ]
        return RescuePrompts(extra_rollouts=(await score_group(task, env, rollouts)).rollouts)


async def comprehension(task: Task, solution: str, env: Env, actor: Actor) -> float:
    """Mean probability of the answer's tokens after the reasoning of a solution.

    It is 0 if the answer is empty, or if the context has no room for it.

    Args:
        task: A task with a reference answer.
        solution: The solution. Its reasoning ends before the last occurrence of the answer.
        env: The environment, for the prompt.
        actor: Evaluates the log-probabilities of the answer.
    """
    answer = str(task.reference_answer).strip()
    if not answer:
        return 0.0
    before_answer, separator, _ = solution.rpartition(answer)
    reasoning = before_answer if separator else solution
    prompt = await initial_observation(task, env)
    # `prefill_forced` builds a response from a given text
    forced_reasoning = await actor.prefill_forced(Rollout(), prompt, reasoning)
    with_reasoning = Rollout().append_turn(prompt, forced_reasoning)
    # an empty observation continues the response
    forced_answer = await actor.prefill_forced(with_reasoning, "", answer)
    with_answer = with_reasoning.append_turn(observation="", response=forced_answer)
    logp = (await actor.logprobs(with_answer)).logp  # of the last response, the answer
    return fmean(map(exp, logp)) if logp else 0.0  # no `logp`: the answer did not fit
