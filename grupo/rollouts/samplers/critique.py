"""Second attempts that saw a critique of the first."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, scored
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import told, without
from grupo.rollouts.samplers.wrapper import Around

RIGHT = 0.5  # a reward above it is that of a right answer


def with_answer(task: Task, rollout: Rollout) -> str:
    """Right or wrong, and the right answer: the critique that needs no critic.

    >>> with_answer(Task("k", "1 + 1 =", 2), Rollout(reward=0.0))
    'This is wrong. The right answer is 2.'
    """
    return f"{verdict(task, rollout)} The right answer is {task.answer}."


def verdict(task: Task, rollout: Rollout) -> str:
    """Right or wrong.

    >>> verdict(Task("k", "1 + 1 =", 2), Rollout(reward=1.0))
    'This is right.'
    """
    return "This is right." if rollout.reward > RIGHT else "This is wrong."


@piece
class Refined(Around):
    """The inner sampler's group, its first rollout replaced by the best of its second attempts.

    Each rollout is criticised, and the policy asked again with its answer, `critique(task,
    rollout)` and `ask`. The first of the best is kept, moved behind the plain prompt; its source is
    "refined".

    Critique-GRPO, Zhang et al. (arXiv:2506.03106).
    """

    critique: Callable[[Task, Rollout], str] = with_answer
    ask: str = "Answer again."

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group = await self.inner(task, env, act)
        again = [
            self._again(task, one, env, act.fork("refined", i))
            for i, one in enumerate(group.rollouts)
            if not one.failed
        ]
        tried = (await scored(task, env, await asyncio.gather(*again))).rollouts if again else ()
        best = sorted((one for one in tried if not one.failed), key=lambda one: -one.reward)[:1]
        return replace(group, rollouts=(*best, *group.rollouts[len(best) :]))

    async def _again(self, task: Task, first: Rollout, env: Env, act: Act) -> Rollout:
        said = (f"Your answer: {first.text}", self.critique(task, first), self.ask)
        asked = told(task, "\n\n" + "\n\n".join(said))
        return replace(await without(task, asked, env, act), source="refined")
