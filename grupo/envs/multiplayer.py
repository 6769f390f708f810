"""A game of several players: rollouts that are each other's world."""

import asyncio
from functools import cached_property
from weakref import WeakKeyDictionary

from grupo.core.component import piece
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.game_session import GAME, PLAYERS, SEAT, Against, House, Table
from grupo.envs.multi_turn import ManyTurns
from grupo.envs.random_opponent import Offered
from grupo.envs.session_cache import Stage, said_in

# of every loop, for as long as it runs: the tables of an arena, by task and by the game's number
_tables: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[int, str, float], Table]] = (
    WeakKeyDictionary()
)


@piece
class Arena(ManyTurns):
    """Games of a world for several, of at most `turns` turns a player.

    Rollouts of the sampler `SelfPlay` sit at tables: each waits for the others of its game, and
    what they say reaches it as the world tells it. Any other plays alone against `house`, in the
    seat that its task's column `seat` says. A game whose world fails has failed for all; where a
    player has no turns left, or no room to answer, the game ends for all as it stands.

    Rewards, parts and marks are those of `ManyTurns`, of each player its own.
    """

    house: House = Offered()

    @cached_property
    def alone(self) -> ManyTurns:
        """The world of a rollout that plays against the house."""
        world = Against(self.world, self.house)
        limits = self.time_limit, self.at_once, self.on_failure
        return ManyTurns(world, self.rewards, self.turns, self.role, *limits)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if SEAT not in rollout.parts:
            return await self.alone.reply(task, rollout)
        stage = await self._stage(task, rollout)
        ended = stage.over or self._table(task, rollout).left
        return None if ended else self._message(stage.heard[-1].said)

    async def _stage(self, task: Task, rollout: Rollout) -> Stage:
        if SEAT not in rollout.parts:
            return await self.alone._stage(task, rollout)
        seat, leaves = int(rollout.parts[SEAT]), self._is_done(rollout)
        return await self._table(task, rollout).turn(seat, said_in(rollout), leaves=leaves)

    def _table(self, task: Task, rollout: Rollout) -> Table:
        tables = _tables.setdefault(asyncio.get_running_loop(), {})
        place = id(self), task.key, rollout.parts[GAME]
        if place not in tables:
            tables[place] = Table(task, self._sessions, int(rollout.parts[PLAYERS]))
        return tables[place]
