"""Games under way: those who play meet at a table, and each waits there for its turn."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from grupo.core.component import component
from grupo.core.rng import make_rng
from grupo.core.types import Observation, Task
from grupo.envs.session_cache import (
    EnvFactory,
    GameEnv,
    SessionCache,
    SessionState,
    StepResult,
    reset_env,
    step_env,
)

SEAT, GAME, PLAYERS = "seat", "game", "players"  # parts of a rollout that yet has to begin


@dataclass
class MultiplayerGame:
    """One game: where it stands is a fold over the words of all who play."""

    task: Task
    session_cache: SessionCache
    num_players: int
    texts: tuple[str, ...] = ()
    text_seats: tuple[int, ...] = ()  # who said it
    abandoned: bool = False  # somebody says no more: nobody is waited for
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_for_turn(
        self, seat: int, texts: tuple[str, ...], *, abandons: bool
    ) -> SessionState:
        """How the game stands for a player who said this, when it is its turn or all is over.

        That is the stage of a world of its own, to which the others belong.
        """
        self._add_text(seat, texts, abandons)
        while True:
            news, stage = self.changed, await self.session_cache.state_after(self.task, self.texts)
            turn = stage.results[-1].next_player if stage.results else seat
            if not 0 <= turn < self.num_players:
                why = f"the world gave the turn to player {turn} of {self.num_players}"
                return SessionState(player_view(seat, stage).results, why)
            if self.abandoned or stage.done or turn == seat:
                return player_view(seat, stage)
            await news.wait()

    def _add_text(self, seat: int, texts: tuple[str, ...], abandons: bool) -> None:
        if len(texts) > self.text_seats.count(seat):
            self.texts, self.text_seats = (*self.texts, texts[-1]), (*self.text_seats, seat)
        elif not abandons:
            return
        self.abandoned |= abandons
        news, self.changed = self.changed, asyncio.Event()
        news.set()


def player_view(seat: int, state: SessionState) -> SessionState:
    """A game as one player has it: what it was told, and what it was paid until its next turn.

    >>> stage = SessionState((StepResult("go"), StepResult("on", next_player=1), StepResult("", done=True, player_rewards=(-1.0, 1.0))))
    >>> [(one.said, one.reward, one.over) for one in player_view(0, stage).heard]
    [('go', 0.0, False), ('go', -1.0, True)]
    """
    own, speaker = [StepResult("")], -1
    for one in state.results:
        if speaker == seat:
            own.append(StepResult(own[-1].observation, counts=one.counts))
        said = (
            one.observation if one.next_player == seat and one.observation else own[-1].observation
        )
        paid = own[-1].reward + (one.player_rewards[seat] if one.player_rewards else 0.0)
        own[-1] = own[-1]._replace(said=said, reward=paid, over=one.done)
        speaker = one.next_player
    return SessionState(tuple(own), state.error)


class Opponent(Protocol):
    """A player that is not trained: what it says to what it hears."""

    def __call__(self, observation: Observation, rng: Random, /) -> str: ...


@component
class VersusOpponent:
    """A world for one: the game, with `opponent` in every seat but that in the task's column `seat`.

    What the house draws, it draws alike in all rollouts of a task that say the same.
    """

    env_factory: EnvFactory
    opponent: Opponent

    def __call__(self) -> "_SinglePlayerGame":
        return _SinglePlayerGame(self.env_factory(), self.opponent)


class _SinglePlayerGame:
    """A session of one player."""

    def __init__(self, env: GameEnv, opponent: Opponent) -> None:
        self.env, self.opponent = env, opponent

    def reset(self, task: Task) -> StepResult:
        self.seat = int(task.columns.get(SEAT, 0))
        self.rng = make_rng(0, "house", task.key)
        return self._play_opponents(reset_env(self.env, task))

    def step(self, text: str) -> StepResult:
        return self._play_opponents(step_env(self.env, text))

    def _play_opponents(self, result: StepResult) -> StepResult:
        """What is heard once the others have had their turns."""
        paid, counts = self._own_reward(result), result.counts
        while result.next_player != self.seat and not result.done:
            result = step_env(self.env, self.opponent(result.observation, self.rng))
            paid += self._own_reward(result)
        return result._replace(reward=paid, counts=counts)

    def _own_reward(self, result: StepResult) -> float:
        return result.player_rewards[self.seat] if result.player_rewards else 0.0
