"""Games of several players, in which rollouts play against one another."""

import asyncio
from functools import cached_property
from weakref import WeakKeyDictionary

from grupo.core.component import component
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.game_session import GAME, PLAYERS, SEAT, MultiplayerGame, Opponent, VersusOpponent
from grupo.envs.multi_turn import MultiTurn
from grupo.envs.random_opponent import RandomOpponent
from grupo.envs.session_cache import SessionState, turn_texts

# per event loop: the games by environment id, task key and index of the game
_open_games: WeakKeyDictionary[
    asyncio.AbstractEventLoop, dict[tuple[int, str, float], MultiplayerGame]
] = WeakKeyDictionary()


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

    @cached_property
    def single_player_env(self) -> MultiTurn:
        """The environment of a rollout that plays against `opponent`."""
        return MultiTurn(
            VersusOpponent(self.env_factory, self.opponent),
            self.rewards,
            self.max_turns,
            self.role,
            self.time_limit,
            self.max_concurrent,
            self.on_failure,
        )

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if SEAT not in rollout.reward_terms:
            return await self.single_player_env.reply(task, rollout)
        state = await self._state(task, rollout)
        if state.done or self._game(task, rollout).abandoned:
            return None
        return self._as_message(state.results[-1].observation)

    async def _state(self, task: Task, rollout: Rollout) -> SessionState:
        if SEAT not in rollout.reward_terms:
            return await self.single_player_env._state(task, rollout)
        seat = int(rollout.reward_terms[SEAT])
        game = self._game(task, rollout)
        return await game.wait_for_turn(seat, turn_texts(rollout), abandons=self._is_done(rollout))

    def _game(self, task: Task, rollout: Rollout) -> MultiplayerGame:
        games = _open_games.setdefault(asyncio.get_running_loop(), {})
        key = (id(self), task.key, rollout.reward_terms[GAME])
        if key not in games:
            num_players = int(rollout.reward_terms[PLAYERS])
            games[key] = MultiplayerGame(task, self._session_cache, num_players)
        return games[key]
