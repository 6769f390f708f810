"""Pairs of an answer with retrieved context and an answer without."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import NumberOrSchedule
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_hidden_hint


@component
class ContextPairs:
    """A pair of the policy's answers: with retrieved context, reward 1, and without, reward 0.

    The first, of source "with_context", is moved behind the task's plain prompt, so that a loss on
    preferences teaches the policy to answer without the context. The group is empty unless the
    environment scores the first higher, and where both texts are the same.

    PRefLexOR, Buehler (arXiv:2410.12375), stage 1: pairs are made while the policy is trained.

    Args:
        retrieve: From a task to the text of its context.
        prompt: Text behind the prompt, with the field {context}.
        margin: By more than so much the first must score higher; -1 keeps the pairs of all tasks
            whose rewards are 0 or 1.
    """

    retrieve: Callable[[Task], str]
    prompt: str = "\n\nContext: {context}"
    margin: NumberOrSchedule = 0.0

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        shown = append_to_prompt(task, self.prompt.format(context=self.retrieve(task)))
        informed, plain = await asyncio.gather(
            rollout_with_hidden_hint(task, shown, env, actor.fork("with_context")),
            run_rollout(task, env, actor.fork("without_context")),
        )
        group = await score_group(task, env, [replace(informed, source="with_context"), plain])
        chosen, rejected = group.rollouts
        gain = chosen.reward - rejected.reward
        if not gain > self.margin or chosen.text == rejected.text:  # NaN after a failure
            return Group(task, ())
        pair = (replace(chosen, reward=1.0), replace(rejected, reward=0.0))
        return replace(group, rollouts=pair)
