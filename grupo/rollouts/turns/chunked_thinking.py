"""Chunked thinking: a long turn in several short contexts."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.numbers import NonNegativeInt, PositiveInt
from grupo.core.types import Observation, Rollout


@component
class ChunkedThinking:
    """A turn of at most `max_chunks` contexts; a full context is followed by a new one.

    The first context holds the observation and `chunk_size` generated tokens. Every later one holds
    the observation, the first `prefix_tokens` and the last `suffix_tokens` generated so far, and as
    many new tokens as `chunk_size` leaves.

    Args:
        chunk_size: Generated tokens in a context, the carried ones included.
        prefix_tokens: Tokens carried over from the start of the turn.
        suffix_tokens: Tokens carried over from the end of the turn so far.
        max_chunks: Contexts of a turn at most.
    """

    chunk_size: PositiveInt = 8192
    prefix_tokens: NonNegativeInt = 100
    suffix_tokens: PositiveInt = 3996
    max_chunks: PositiveInt = 5

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        start = len(rollout.turns)
        room = self.chunk_size - self.prefix_tokens - self.suffix_tokens
        # positions repeat where a context restarts, so each context has a random stream of its own
        first = actor.fork(start).with_stop(max_new_tokens=self.chunk_size)
        rollout = rollout.append_turn(observation, await first(rollout, observation))
        for number in range(start + 1, start + self.max_chunks):
            if not rollout.truncated:
                break
            turn = replace(rollout, turns=rollout.turns[start:])
            later = actor.fork(number).with_stop(max_new_tokens=room)
            response = await later.restart_context(
                turn, observation, self.suffix_tokens, self.prefix_tokens
            )
            rollout = rollout.append_turn("", response)
        return rollout
