"""Rollouts whose thoughts are not trained on."""

from bisect import bisect_left
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.base import Sampler


@component
class OnlyAnswerTokens:
    """The rollouts of another sampler, of which only the text after the thoughts is trained on.

    The tokens up to the last `think_end` are masked: they do not count in losses and lengths. A
    rollout without `think_end` is unchanged.

    PRefLexOR, Buehler (arXiv:2410.12375), stage 2: `dynamic_answer_comparison` in the code.

    Args:
        inner: The sampler.
        think_end: Text that ends the thoughts.
    """

    inner: Sampler
    think_end: NonEmptyString = "</think>"

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        return group.with_rollouts(mask_thoughts(actor, r, self.think_end) for r in group.rollouts)


def mask_thoughts(actor: Actor, rollout: Rollout, think_end: str) -> Rollout:
    """The rollout with only the items after its last `think_end` in the loss.

    The response that contains `think_end` is split into two: the thoughts, which are masked, and
    the answer, which is trained on. Earlier responses are masked.

    Args:
        actor: Decodes prefixes of the response, to find the token at a character.
        rollout: The rollout.
        think_end: Text that ends the thoughts.
    """
    ends = [i for i, (_, response) in enumerate(rollout.turns) if think_end in response.text]
    if not ends:
        return rollout
    last = ends[-1]
    masked_turns = [
        (observation, replace(response, in_loss=False))
        for observation, response in rollout.turns[:last]
    ]
    through_last = replace(rollout, turns=rollout.turns[: last + 1])
    observation, response = through_last.turns[-1]
    cut = num_items_covering(actor, through_last, response.text.rindex(think_end) + len(think_end))
    thoughts = actor.truncate(through_last, cut).last_response
    answer = replace(
        response,
        items=response.items[cut:],
        logp=response.logp[cut:],
        observation=(),
        text=response.text[len(thoughts.text) :],
        resets_context=False,
        later_parts=(),
        routes="",  # the recorded routes begin with the tokens of the thoughts
    )
    masked = replace(thoughts, in_loss=False, finish_reason="stop", later_parts=())
    turns = (*masked_turns, (observation, masked), ("", answer), *rollout.turns[last + 1 :])
    return replace(rollout, turns=turns)


def num_items_covering(actor: Actor, rollout: Rollout, characters: int) -> int:
    """The number of leading items of the last response that cover its first `characters`.

    Args:
        actor: Decodes prefixes of the response.
        rollout: The rollout.
        characters: Number of leading characters of the response's text.
    """
    return bisect_left(
        range(len(rollout.last_response.items)),
        characters,
        key=lambda n: len(actor.truncate(rollout, n).last_response.text),
    )
