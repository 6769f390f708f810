"""Games of several players, in which rollouts play against one another."""

from dataclasses import dataclass, field

from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.types import Observation, Rollout, Seat, Task
from grupo.envs.game_session import MultiplayerGame, Opponent, VersusOpponent
from grupo.envs.multi_turn import MultiTurn, MultiTurnSessions
from grupo.envs.random_opponent import RandomOpponent
from grupo.envs.session_cache import turn_texts
from grupo.envs.session_steps import SessionState


@component
class MultiplayerEnv(MultiTurn):
    """Games of several players; every player's rollout has its own observations and rewards.

    Rollouts of the sampler `SelfPlay` play one another: each waits for its turn, and the others'
    texts reach it in the observations of the environment only. Any other rollout plays alone
    against `opponent`, in the seat of its task's column `seat`. If the environment fails, the game
    fails for all its players. If a player has no turns left, or no room for an answer, the game
    ends for all in its current state.

    Rewards, reward terms and step values are those of `MultiTurn`, for each player its own. A
    turn's step reward includes the player's rewards until its next turn.

    Args:
        opponent: Plays the other seats of rollouts that do not come from `SelfPlay`.
    """

    opponent: Opponent = RandomOpponent()

    def open(self) -> Env:
        """The environment with its games and sessions, for use in one event loop."""
        versus_opponent = self.versus_opponent()
        single_player = MultiTurnSessions(versus_opponent, versus_opponent.session_cache())
        return MultiplayerSessions(self, self.session_cache(), single_player)

    def versus_opponent(self) -> MultiTurn:
        """The environment of a rollout that plays against `opponent`."""
        return MultiTurn(
            VersusOpponent(self.env_factory, self.opponent),
            self.rewards,
            self.max_turns,
            self.role,
            self.time_limit,
            self.max_concurrent,
            self.on_failure,
            self.answer_error_reward,
        )


@dataclass(frozen=True)
class MultiplayerSessions(MultiTurnSessions):
    """A `MultiplayerEnv` in use: its fields, its games, and the sessions of both kinds.

    Args:
        single_player: Answers rollouts that play against the opponent.
        games: Games between rollouts, by task key and by the game of a `Seat`.
    """

    single_player: MultiTurnSessions
    games: dict[tuple[str, int], MultiplayerGame] = field(default_factory=dict)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if rollout.seat is None:
            return await self.single_player.reply(task, rollout)
        state = await self._state(task, rollout)
        if state.done or self._game(task, rollout.seat).abandoned:
            return None
        return self._as_message(state.results[-1].observation)

    async def _state(self, task: Task, rollout: Rollout) -> SessionState:
        if rollout.seat is None:
            return await self.single_player._state(task, rollout)
        game = self._game(task, rollout.seat)
        abandons = self._is_done(rollout)
        return await game.wait_for_turn(rollout.seat.number, turn_texts(rollout), abandons=abandons)

    def _close(self, task: Task, rollout: Rollout) -> None:
        if rollout.seat is None:
            self.single_player._close(task, rollout)
        else:
            self.session_cache.close_sessions(task, self._game(task, rollout.seat).texts)

    def _game(self, task: Task, seat: Seat) -> MultiplayerGame:
        key = (task.key, seat.game)
        if key not in self.games:
            self.games[key] = MultiplayerGame(task, self.session_cache, seat.players)
        return self.games[key]
