"""Thinking budgets: separate token limits for thinking and for the answer."""

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.numbers import PositiveInt
from grupo.core.types import Observation, Rollout


@component
class ThinkingBudget:
    """A turn with a limit for the tokens before `think_end`, and another for the tokens after it.

    If the thinking reaches its limit, `think_end` is added as forced text. If the policy ends its
    response before `think_end`, the turn has no answer.

    Args:
        thinking_tokens: Largest number of tokens before `think_end`.
        answer_tokens: Largest number of tokens after `think_end`.
        think_end: Text that ends the thinking.
    """

    thinking_tokens: PositiveInt = 1024
    answer_tokens: PositiveInt = 1024
    think_end: str = "</think>"

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        thinking = actor.with_stop(self.think_end, max_new_tokens=self.thinking_tokens)
        response = await thinking(rollout, observation)
        rollout = rollout.append_turn(observation, response)
        if response.finish_reason == "end":
            return rollout
        if response.finish_reason == "length":
            forced = await actor.prefill_forced(rollout, "", self.think_end)
            rollout = rollout.append_turn("", forced)
        answer = actor.with_stop(max_new_tokens=self.answer_tokens)
        return rollout.append_turn("", await answer(rollout, ""))
