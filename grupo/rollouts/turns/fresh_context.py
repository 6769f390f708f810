"""Fresh contexts: each observation begins a new context, without the turns before it."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.types import Observation, Rollout


@component
class FreshContext:
    """A turn whose context is the observation alone, without the turns before it.

    It is for environments whose observations hold all that the policy needs: contexts stay short,
    and each turn is a row of the batch. It is the outermost of nested strategies.

    Args:
        inner: Generates the answer, as if the observation were the first one.
    """

    inner: TurnStrategy = single_response

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        # positions repeat in a new context, so each turn has a random stream of its own
        turn_actor = actor.fork("turn", len(rollout.turns))
        alone = await self.inner(turn_actor, replace(rollout, turns=()), observation)
        (prompt, response), *rest = alone.turns
        first = (prompt, replace(response, resets_context=True))
        return replace(alone, turns=(*rollout.turns, first, *rest))
