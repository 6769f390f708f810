"""Pairs of two answers of the policy: one with retrieved context, and one without context."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import NumberOrSchedule
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_removed_hint


@component
class ContextPairs:
    """A pair of answers: one with retrieved context, reward 1, and one without context, reward 0.

    The answer with context has the source "with_context". Its prompt is then replaced by the task's
    own prompt, so that a loss on preferences teaches the policy to answer without the context. The
    group is empty if the environment does not score this answer higher, or if the texts are equal.

    PRefLexOR, Buehler (arXiv:2410.12375), stage 1: pairs are made while the policy is trained.

    Args:
        retrieve: Returns the text of the context of a task.
        prompt: Text at the end of the prompt, with the field {context}.
        margin: The reward of the answer with context minus the other reward must be above this
            number. With -1 and rewards of 0 and 1, a pair is left out only if the answer with
            context is wrong and the other one is correct.
    """

    retrieve: Callable[[Task], str]
    prompt: str = "\n\nContext: {context}"
    margin: NumberOrSchedule = 0.0

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        context_task = append_to_prompt(task, self.prompt.format(context=self.retrieve(task)))
        with_context, without_context = await asyncio.gather(
            rollout_with_removed_hint(task, context_task, env, actor.fork("with_context")),
            run_rollout(task, env, actor.fork("without_context")),
        )
        with_context = replace(with_context, source="with_context")
        group = await score_group(task, env, [with_context, without_context])
        chosen, rejected = group.rollouts
        gain = chosen.reward - rejected.reward  # NaN if one could not be scored
        if not gain > self.margin or chosen.text == rejected.text:
            return Group(task, ())
        pair = (replace(chosen, reward=1.0), replace(rejected, reward=0.0))
        return replace(group, rollouts=pair)
