"""A task that failed before, asked once more with one of its failures."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import told
from grupo.rollouts.samplers.wrapper import Around

LEAD = "\n\nAn answer that is wrong: "
ASK = "\n\nThink about what is wrong with it, and answer again."


@piece
class Reflected(Around):
    """The inner sampler's group, and as many more that saw a wrong answer, where those fail.

    That is where the mean reward of `task.before` is below `below`. One of those that earned less
    is shown, after `lead` and before `ask`. The part `reflected` is 1 for who saw it, 0 for others.

    R^3, in-context self-reflection. Jiang et al. (arXiv:2601.19620), section 3.1.
    """

    below: float = 0.25
    lead: str = LEAD
    ask: str = ASK
    gives = ("reflected",)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        rewards = [one.reward for one in task.before]
        wrong = [one for one in task.before if one.reward < self.below]
        groups = [self.inner(task, env, act)]
        if wrong and sum(rewards) / len(rewards) < self.below:
            shown = act.chance("shown").choice(wrong)
            again = told(task, self.lead + shown.text + self.ask)
            groups.append(self.inner(again, env, act.fork("reflected")))
        found = enumerate(await asyncio.gather(*groups))
        marked = (_marked(rollout, float(i)) for i, group in found for rollout in group.rollouts)
        return Group(task, tuple(marked))


def _marked(rollout: Rollout, reflected: float) -> Rollout:
    return replace(rollout, parts={**rollout.parts, "reflected": reflected})
