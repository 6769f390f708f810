"""Fresh contexts: each observation begins a new context, without the turns before it."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.types import Observation, Rollout


@component
class FreshContext:
    """A turn whose context is the observation alone, without the turns before it.

    This strategy suits environments in which each observation has all that the policy needs.
    Contexts stay short, and each turn is a row of the batch. Nested strategies have it outermost.

    Args:
        inner: Generates the answer. It receives the rollout without its earlier turns.
    """

    inner: TurnStrategy = single_response

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        # positions repeat in a new context, so each turn has a random stream of its own
        turn_actor = actor.fork("turn", len(rollout.turns))
        alone = await self.inner(turn_actor, replace(rollout, turns=()), observation)
        (prompt, response), *rest = alone.turns
        first = (prompt, replace(response, resets_context=True))
        return replace(alone, turns=(*rollout.turns, first, *rest))
