"""A game of several players: rollouts that are each other's world."""

import asyncio
from functools import cached_property
from weakref import WeakKeyDictionary

from grupo.core.component import component
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.game_session import GAME, PLAYERS, SEAT, MultiplayerGame, Opponent, VersusOpponent
from grupo.envs.multi_turn import MultiTurn
from grupo.envs.random_opponent import RandomOpponent
from grupo.envs.session_cache import SessionState, turn_texts

# of every loop, for as long as it runs: the tables of an arena, by task and by the game's number
_open_games: WeakKeyDictionary[
    asyncio.AbstractEventLoop, dict[tuple[int, str, float], MultiplayerGame]
] = WeakKeyDictionary()


@component
class MultiplayerEnv(MultiTurn):
    """Games of a world for several, of at most `turns` turns a player.

    Rollouts of the sampler `SelfPlay` sit at tables: each waits for the others of its game, and
    what they say reaches it as the world tells it. Any other plays alone against `opponent`, in the
    seat that its task's column `seat` says. A game whose world fails has failed for all; where a
    player has no turns left, or no room to answer, the game ends for all as it stands.

    Rewards, parts and marks are those of `MultiTurn`, of each player its own.
    """

    opponent: Opponent = RandomOpponent()

    @cached_property
    def single_player_env(self) -> MultiTurn:
        """The world of a rollout that plays against the house."""
        world = VersusOpponent(self.env_factory, self.opponent)
        limits = self.time_limit, self.max_concurrent, self.on_failure
        return MultiTurn(world, self.rewards, self.max_turns, self.role, *limits)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if SEAT not in rollout.reward_terms:
            return await self.single_player_env.reply(task, rollout)
        stage = await self._state(task, rollout)
        ended = stage.done or self._game(task, rollout).abandoned
        return None if ended else self._as_message(stage.results[-1].observation)

    async def _state(self, task: Task, rollout: Rollout) -> SessionState:
        if SEAT not in rollout.reward_terms:
            return await self.single_player_env._state(task, rollout)
        seat, leaves = int(rollout.reward_terms[SEAT]), self._is_done(rollout)
        return await self._game(task, rollout).wait_for_turn(
            seat, turn_texts(rollout), abandons=leaves
        )

    def _game(self, task: Task, rollout: Rollout) -> MultiplayerGame:
        tables = _open_games.setdefault(asyncio.get_running_loop(), {})
        place = id(self), task.key, rollout.reward_terms[GAME]
        if place not in tables:
            tables[place] = MultiplayerGame(
                task, self._session_cache, int(rollout.reward_terms[PLAYERS])
            )
        return tables[place]
