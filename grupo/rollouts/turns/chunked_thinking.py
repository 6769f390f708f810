"""A long turn in short contexts."""

from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act
from grupo.core.types import Observation, Rollout


@piece
class Chunked:
    """A turn of at most `chunks` contexts, each begun anew when the one before is full.

    A context holds what the world said and `chunk` tokens of the policy's; from the second on the
    first of them are carried over: the `head` that the turn began with, and the `tail` said last.
    """

    chunk: int = 8192
    head: int = 100
    tail: int = 3996
    chunks: int = 5

    async def __call__(self, act: Act, rollout: Rollout, seen: Observation) -> Rollout:
        begun, fresh = len(rollout.turns), self.chunk - self.head - self.tail
        # where a context begins anew, places come again: each has a stream of its own
        said = rollout.then(seen, await act.fork(begun).until(limit=self.chunk)(rollout, seen))
        for number in range(begun + 1, begun + self.chunks):
            if not said.truncated:
                break
            turn, more = (
                replace(said, turns=said.turns[begun:]),
                act.fork(number).until(limit=fresh),
            )
            said = said.then("", await more.anew(turn, seen, self.tail, self.head))
        return said
