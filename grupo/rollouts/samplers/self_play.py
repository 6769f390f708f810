"""Self-play: games in which the policy takes every seat."""

import asyncio

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
    """Plays games of a task in a `MultiplayerEnv`, with one rollout for each player of a game.

    A rollout has the observations and the responses of its player, and only these responses are
    trained on. The reward term `seat` is the number of the player, from 0.

    Args:
        games: Number of games in a group.
        players: Number of players of a game.
        turn_strategy: Generates the response to one observation.
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
        num_games = -(-task.group_size // self.players) or self.games  # rounded up
        rollouts = await asyncio.gather(
            *(
                self._play(task, env, actor, game, player)
                for game in range(num_games)
                for player in range(self.players)
            )
        )
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(
            _with_seat_term(rollout)
            for rollout in group.rollouts
            if rollout.turns or rollout.error  # a player without a turn has nothing to train on
        )

    async def _play(self, task: Task, env: Env, actor: Actor, game: int, player: int) -> Rollout:
        game_id = actor.rng("game", game).getrandbits(48)  # different for each game of the task
        rollout = Rollout(seat=Seat(game_id, player, self.players))
        return await run_rollout(task, env, actor.fork(game, player), rollout, self.turn_strategy)


def _with_seat_term(rollout: Rollout) -> Rollout:
    assert rollout.seat, "a turn strategy must keep the rollout's seat"
    return rollout.with_reward_terms({"seat": float(rollout.seat.number)})
