"""Self-play: games in which the policy takes every seat, or gives seats to other roles."""

import asyncio

from grupo.core.component import check_field, component
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
        roles: Role of each seat, "" for the policy itself; () if the policy takes every seat.
        frozen: Roles whose rollouts are left out of the group, so that nothing is trained on them.

    Raises:
        ConfigError: `roles` has another number of seats, or `frozen` a role of no seat, or of all.
    """

    games: PositiveInt = 8
    players: PositiveInt = 2
    turn_strategy: TurnStrategy = single_response
    roles: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seats = f"() or {self.players} roles, one for each seat"
        check_field(self, "roles", len(self.roles) in (0, self.players), seats)
        known = set(self._seat_roles)
        is_known = set(self.frozen) <= known and set(self.frozen) != known
        check_field(self, "frozen", is_known, f"some of {sorted(known)}, and not all")

    @property
    def provides(self) -> Provides:
        """The reward term `seat`, and the roles."""
        return Provides(
            reward_terms=("seat",),
            roles=filter(None, self.roles),
            trained_roles=set(self._seat_roles) - set(self.frozen),
        )

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.games * len(self._trained_seats)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        num_games = -(-task.group_size // len(self._trained_seats)) or self.games  # rounded up
        rollouts = await asyncio.gather(
            *(
                self._play(task, env, actor, game, player)
                for game in range(num_games)
                for player in range(self.players)
            )
        )
        trained = [rollout for rollout in rollouts if rollout.role not in self.frozen]
        group = await score_group(task, env, trained)
        return group.with_rollouts(
            _with_seat_term(rollout)
            for rollout in group.rollouts
            if rollout.turns or rollout.error  # a player without a turn has nothing to train on
        )

    @property
    def _seat_roles(self) -> tuple[str, ...]:
        return self.roles or ("",) * self.players

    @property
    def _trained_seats(self) -> tuple[int, ...]:
        return tuple(i for i, role in enumerate(self._seat_roles) if role not in self.frozen)

    async def _play(self, task: Task, env: Env, actor: Actor, game: int, player: int) -> Rollout:
        game_id = actor.rng("game", game).getrandbits(48)  # different for each game of the task
        seat = Seat(game_id, player, self.players)
        rollout = Rollout(role=self._seat_roles[player], seat=seat)
        return await run_rollout(task, env, actor.fork(game, player), rollout, self.turn_strategy)


def _with_seat_term(rollout: Rollout) -> Rollout:
    assert rollout.seat, "a turn strategy must keep the rollout's seat"
    return rollout.with_reward_terms({"seat": float(rollout.seat.number)})
