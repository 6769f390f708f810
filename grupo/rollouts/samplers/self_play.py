"""Games that the policy plays with itself."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, TurnStrategy, run_rollout, score_group, single_action
from grupo.core.types import Group, Rollout, Task


@component
class SelfPlay:
    """`games` games of a task, the policy in every seat: a rollout for each of `players` players.

    Their world is an `MultiplayerEnv`. A rollout holds what its player heard and said, and only that is
    learned; who sat where is its part `seat`: 0, 1 ...
    """

    games: int = 8
    players: int = 2
    turn_strategy: TurnStrategy = single_action
    provides = ("seat",)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.games * self.players

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        games = -(-task.group_size // self.players) or self.games
        seats = [(game, seat) for game in range(games) for seat in range(self.players)]
        plays = (
            run_rollout(
                task, env, actor.fork(*seat), self._empty_rollout(actor, *seat), self.turn_strategy
            )
            for seat in seats
        )
        group = await score_group(task, env, await asyncio.gather(*plays))
        told = (
            replace(rollout, reward_terms={**rollout.reward_terms, "seat": float(seat)})
            for rollout, (_, seat) in zip(group.rollouts, seats, strict=True)
            if rollout.turns or rollout.error  # of nothing there is nothing to learn
        )
        return replace(group, rollouts=tuple(told))

    def _empty_rollout(self, actor: Actor, game: int, seat: int) -> Rollout:
        """A rollout that has yet to begin; no other game has its number."""
        number = float(actor.rng("game", game).getrandbits(48))
        return Rollout(
            reward_terms={"game": number, "seat": float(seat), "players": float(self.players)}
        )
