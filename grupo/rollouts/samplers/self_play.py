"""Self-play: games in which the policy takes every seat."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, TurnStrategy, run_rollout, score_group, single_action
from grupo.core.types import Group, Rollout, Task


@component
class SelfPlay:
    """Plays `games` games of a task in a `MultiplayerEnv`: one rollout per player of a game.

    A rollout holds the observations and actions of its player, and only these actions are trained.
    The reward term `seat` numbers the players of a game from 0.

    Args:
        games: Games in a group.
        players: Players of a game.
        turn_strategy: How the policy takes a turn.
    """

    games: int = 8
    players: int = 2
    turn_strategy: TurnStrategy = single_action
    provides = ("seat",)

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.games * self.players

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        games = -(-task.group_size // self.players) or self.games
        seats = [(game, seat) for game in range(games) for seat in range(self.players)]
        rollouts = await asyncio.gather(
            *(self._play(task, env, actor, game, seat) for game, seat in seats)
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            replace(rollout, reward_terms={**rollout.reward_terms, "seat": float(seat)})
            for rollout, (_, seat) in zip(group.rollouts, seats, strict=True)
            if rollout.turns or rollout.error  # a player without a turn has nothing to train on
        )
        return replace(group, rollouts=tuple(annotated))

    async def _play(self, task: Task, env: Env, actor: Actor, game: int, seat: int) -> Rollout:
        rollout = self._empty_rollout(actor, game, seat)
        return await run_rollout(task, env, actor.fork(game, seat), rollout, self.turn_strategy)

    def _empty_rollout(self, actor: Actor, game: int, seat: int) -> Rollout:
        """A rollout before its first turn, with a game number that no other game has."""
        number = float(actor.rng("game", game).getrandbits(48))
        return Rollout(
            reward_terms={"game": number, "seat": float(seat), "players": float(self.players)}
        )
