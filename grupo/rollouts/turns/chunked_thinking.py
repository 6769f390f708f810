"""A long turn in short contexts."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.types import Observation, Rollout


@component
class ChunkedThinking:
    """A turn of at most `chunks` contexts, each begun anew when the one before is full.

    A context holds what the world said and `chunk` tokens of the policy's; from the second on the
    first of them are carried over: the `head` that the turn began with, and the `suffix_tokens` said last.
    """

    chunk_size: int = 8192
    prefix_tokens: int = 100
    suffix_tokens: int = 3996
    max_chunks: int = 5

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        begun, fresh = len(rollout.turns), self.chunk_size - self.prefix_tokens - self.suffix_tokens
        # where a context begins anew, places come again: each has a stream of its own
        said = rollout.append_turn(
            observation,
            await actor.fork(begun).with_stop(max_new_tokens=self.chunk_size)(rollout, observation),
        )
        for number in range(begun + 1, begun + self.max_chunks):
            if not said.truncated:
                break
            turn, more = (
                replace(said, turns=said.turns[begun:]),
                actor.fork(number).with_stop(max_new_tokens=fresh),
            )
            said = said.append_turn(
                "",
                await more.restart_context(
                    turn, observation, self.suffix_tokens, self.prefix_tokens
                ),
            )
        return said
