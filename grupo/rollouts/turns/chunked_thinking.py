"""Chunked thinking: a long turn is generated in several short contexts."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.numbers import NonNegativeInt, PositiveInt
from grupo.core.types import Observation, Rollout


@component
class ChunkedThinking:
    """A turn of at most `max_chunks` contexts; when a context is full, the next one begins.

    The first context has the observation and up to `chunk_size` generated tokens. A later context
    begins with the observation and with tokens of the turn so far: its first `prefix_tokens` and
    its last `suffix_tokens`. New tokens follow, until the context has `chunk_size` tokens of the
    turn in all.

    Args:
        chunk_size: Largest number of tokens of the turn in a context.
        prefix_tokens: Number of tokens that a later context repeats from the start of the turn.
        suffix_tokens: Number of tokens that a later context repeats from the end of the turn.
        max_chunks: Largest number of contexts in a turn.
    """

    chunk_size: PositiveInt = 8192
    prefix_tokens: NonNegativeInt = 100
    suffix_tokens: PositiveInt = 3996
    max_chunks: PositiveInt = 5

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        start = len(rollout.turns)
        num_new_tokens = self.chunk_size - self.prefix_tokens - self.suffix_tokens
        # each context has a random stream of its own, because positions repeat in a new context
        first_actor = actor.fork(start).with_stop(max_new_tokens=self.chunk_size)
        rollout = rollout.append_turn(observation, await first_actor(rollout, observation))
        for number in range(start + 1, start + self.max_chunks):
            if not rollout.truncated:
                break
            turn_so_far = replace(rollout, turns=rollout.turns[start:])
            next_actor = actor.fork(number).with_stop(max_new_tokens=num_new_tokens)
            response = await next_actor.restart_context(
                turn_so_far, observation, self.suffix_tokens, self.prefix_tokens
            )
            rollout = rollout.append_turn("", response)
        return rollout
