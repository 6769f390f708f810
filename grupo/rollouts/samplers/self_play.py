"""Self-play: games in which the policy takes every seat."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import (
    Actor,
    Env,
    TurnStrategy,
    run_rollout,
    score_group,
    single_response,
)
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Seat, Task


@component
class SelfPlay:
    """Plays `games` games of a task in a `MultiplayerEnv`: one rollout per player of a game.

    A rollout holds the observations and responses of its player, and is trained on these responses
    alone. The reward term `seat` numbers the players of a game from 0.

    Args:
        games: Games in a group.
        players: Players of a game.
        turn_strategy: How the policy takes a turn.
    """

    games: PositiveInt = 8
    players: PositiveInt = 2
    turn_strategy: TurnStrategy = single_response

    provides = Provides(reward_terms=("seat",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.games * self.players

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        games = -(-task.group_size // self.players) or self.games
        rollouts = await asyncio.gather(
            *(
                self._play(task, env, actor, game, number)
                for game in range(games)
                for number in range(self.players)
            )
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            _with_seat_term(rollout)
            for rollout in group.rollouts
            if rollout.turns or rollout.error  # a player without a turn has nothing to train on
        )
        return replace(group, rollouts=tuple(annotated))

    async def _play(self, task: Task, env: Env, actor: Actor, game: int, number: int) -> Rollout:
        game_id = actor.rng("game", game).getrandbits(48)  # no other game of the task has it
        rollout = Rollout(seat=Seat(game_id, number, self.players))
        return await run_rollout(task, env, actor.fork(game, number), rollout, self.turn_strategy)


def _with_seat_term(rollout: Rollout) -> Rollout:
    assert rollout.seat, "a turn strategy must keep the rollout's seat"
    terms = {**rollout.reward_terms, "seat": float(rollout.seat.number)}
    return replace(rollout, reward_terms=terms)
