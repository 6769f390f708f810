"""Games that the policy plays with itself."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, Turn, one_action, play, scored
from grupo.core.types import Group, Rollout, Task


@piece
class SelfPlay:
    """`games` games of a task, the policy in every seat: a rollout for each of `players` players.

    Their world is an `Arena`. A rollout holds what its player heard and said, and only that is
    learned; who sat where is its part `seat`: 0, 1 ...
    """

    games: int = 8
    players: int = 2
    turn: Turn = one_action
    gives = ("seat",)

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.games * self.players

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        games = -(-task.attempts // self.players) or self.games
        seats = [(game, seat) for game in range(games) for seat in range(self.players)]
        plays = (
            play(task, env, act.fork(*seat), self._seated(act, *seat), self.turn) for seat in seats
        )
        group = await scored(task, env, await asyncio.gather(*plays))
        told = (
            replace(rollout, parts={**rollout.parts, "seat": float(seat)})
            for rollout, (_, seat) in zip(group.rollouts, seats, strict=True)
            if rollout.turns or rollout.failed  # of nothing there is nothing to learn
        )
        return replace(group, rollouts=tuple(told))

    def _seated(self, act: Act, game: int, seat: int) -> Rollout:
        """A rollout that has yet to begin; no other game has its number."""
        number = float(act.chance("game", game).getrandbits(48))
        return Rollout(parts={"game": number, "seat": float(seat), "players": float(self.players)})
