"""So much to think, so much to answer."""

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.types import Observation, Rollout


@component
class ThinkingBudget:
    """A turn of at most `thinking_tokens` tokens until it says `close`, and of `solve` tokens after that.

    Where thinking does not come to its end, `close` is forced. An answer that ends while it thinks
    is over.
    """

    thinking_tokens: int = 1024
    answer_tokens: int = 1024
    think_end: str = "</think>"

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        thought = await actor.with_stop(self.think_end, max_new_tokens=self.thinking_tokens)(
            rollout, observation
        )
        said = rollout.append_turn(observation, thought)
        if thought.finish_reason == "end":
            return said
        if thought.finish_reason == "length":
            said = said.append_turn("", await actor.prefill_forced(said, "", self.think_end))
        return said.append_turn(
            "", await actor.with_stop(max_new_tokens=self.answer_tokens)(said, "")
        )
