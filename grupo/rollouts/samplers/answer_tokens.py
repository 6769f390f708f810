"""Rollouts whose thoughts are not trained on."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.base import Sampler


@component
class OnlyAnswerTokens:
    """The rollouts of another sampler, trained on behind their last `think_end` only.

    Tokens of the thoughts and of `think_end` are masked: losses, scores and lengths do not see
    them. A rollout without `think_end` stays as it is.

    PRefLexOR, Buehler (arXiv:2410.12375), stage 2, as `dynamic_answer_comparison` in its code.

    Args:
        inner: The sampler.
        think_end: Text that ends the thoughts.
    """

    inner: Sampler
    think_end: NonEmptyString = "</think>"

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        masked = (mask_thoughts(actor, rollout, self.think_end) for rollout in group.rollouts)
        return replace(group, rollouts=tuple(masked))


def mask_thoughts(actor: Actor, rollout: Rollout, think_end: str) -> Rollout:
    """The rollout with the responses up to its last `think_end` out of the loss.

    The response that contains it becomes two, of which the second is trained on.

    Args:
        actor: Cuts and decodes.
        rollout: The rollout.
        think_end: Text that ends the thoughts.
    """
    ends = [i for i, (_, response) in enumerate(rollout.turns) if think_end in response.text]
    if not ends:
        return rollout
    last = ends[-1]
    before = [
        (observation, replace(response, in_loss=False))
        for observation, response in rollout.turns[:last]
    ]
    part = replace(rollout, turns=rollout.turns[: last + 1])
    observation, response = part.turns[-1]
    cut = items_through(actor, part, response.text.rindex(think_end) + len(think_end))
    thoughts = actor.truncate(part, cut).turns[-1][1]
    answer = replace(
        response,
        items=response.items[cut:],
        logp=response.logp[cut:],
        observation=(),
        text=response.text[len(thoughts.text) :],
        resets_context=False,
        later_parts=(),
        routes="",  # those of the first tokens belong to the thoughts
    )
    masked = replace(thoughts, in_loss=False, finish_reason="stop", later_parts=())
    turns = (*before, (observation, masked), ("", answer), *rollout.turns[last + 1 :])
    return replace(rollout, turns=turns)


def items_through(actor: Actor, rollout: Rollout, characters: int) -> int:
    """The smallest number of items of the last response whose text has so many characters."""
    low, high = 0, len(rollout.turns[-1][1].items)
    while low < high:
        middle = (low + high) // 2
        if len(actor.truncate(rollout, middle).turns[-1][1].text) < characters:
            low = middle + 1
        else:
            high = middle
    return low
