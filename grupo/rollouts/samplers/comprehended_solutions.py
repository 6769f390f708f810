"""Solutions of several teachers, of which those that the policy comprehends best are shown."""

import asyncio
from math import exp
from statistics import fmean

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, score_group
from grupo.core.ranges import PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.demonstrations import demonstration_rollout
from grupo.rollouts.samplers.rescue import AttemptPrompts


@component
class ComprehendedSolutions:
    """Builds no prompts: the rollouts are the solutions that the policy comprehends best, scored.

    A solution is comprehended by the mean probability of the tokens of the reference answer behind
    the prompt and the solution up to the last place where that answer stands. Solutions are not
    sampled; their source is "expert".

    AMPO, Yuan et al. (arXiv:2510.02227).

    Args:
        columns: Columns of the solutions, one of each teacher; a task may lack some.
        count: Solutions of a group.
    """

    columns: tuple[str, ...] = ("solution",)
    count: PositiveInt = 2

    @property
    def requires(self) -> Requires:
        return Requires(columns=self.columns)

    async def __call__(self, group: Group, env: Env, actor: Actor) -> AttemptPrompts:
        task = group.task
        texts = [str(task.columns[name]) for name in self.columns if name in task.columns]
        if not texts:
            return AttemptPrompts()
        scores = await asyncio.gather(*(comprehension(task, text, env, actor) for text in texts))
        order = sorted(range(len(texts)), key=lambda i: -scores[i])[: self.count]
        rollouts = [
            await demonstration_rollout(task, env, actor, texts[i], "expert") for i in order
        ]
        return AttemptPrompts(rollouts=(await score_group(task, env, rollouts)).rollouts)


async def comprehension(task: Task, solution: str, env: Env, actor: Actor) -> float:
    """Mean probability of the answer's tokens behind the reasoning of a solution.

    0 if the context has no room for the answer.

    Args:
        task: A task with a reference answer.
        solution: The solution; its reasoning ends before the last place of the answer.
        env: The environment, for the prompt.
        actor: Scores the answer.
    """
    answer = str(task.reference_answer).strip()
    before, found, _ = solution.rpartition(answer)
    prompt = await initial_observation(task, env)
    reasoning = await actor.prefill_forced(Rollout(), prompt, before if found else solution)
    read = Rollout().append_turn(prompt, reasoning)
    forced = await actor.prefill_forced(read, "", answer)
    logp = (await actor.logprobs(read.append_turn("", forced))).logp
    return fmean(map(exp, logp)) if logp else 0.0
