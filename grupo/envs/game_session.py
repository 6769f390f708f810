"""Games of several players: one shared game, each player's view of it, and games with opponents."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from grupo.core.component import component
from grupo.core.types import Observation, Task
from grupo.envs.game_env import ClosableEnv, EnvFactory, GameEnv, StepResult, reset_env, step_env
from grupo.envs.session_cache import SessionCache
from grupo.envs.session_steps import ANSWER_ERROR, SessionState
from grupo.util.rng import make_rng

ABORTED_ERROR = "the game ended without a result: another player's answer made it hang"


@dataclass
class MultiplayerGame:
    """One game, whose state is a fold over the texts of all its players.

    Args:
        task: The game's task.
        session_cache: Computes the state after the texts.
        num_players: Number of seats.
        texts: Texts of all players, in order.
        text_seats: The seat of the player that generated each text.
        abandoned: A player has no turns left; the game ends for all.
        changed: Set, and replaced, whenever the texts or `abandoned` change.
    """

    task: Task
    session_cache: SessionCache
    num_players: int
    texts: tuple[str, ...] = ()
    text_seats: tuple[int, ...] = ()
    abandoned: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_for_turn(
        self, seat: int, texts: tuple[str, ...], *, abandons: bool
    ) -> SessionState:
        """The player's view of the game once it is the player's turn, or the game is over.

        Args:
            seat: The player.
            texts: All texts of this player so far; a new one is added to the game.
            abandons: The player takes no further turn.
        """
        self._add_text(seat, texts, abandons)
        while True:
            changed = self.changed
            state = await self.session_cache.state_after(self.task, self.texts)
            turn = state.results[-1].next_player if state.results else seat
            if not 0 <= turn < self.num_players:
                error = f"the environment gave the turn to player {turn} of {self.num_players}"
                return SessionState(player_view(seat, state).results, error)
            if self.abandoned or state.done or turn == seat:
                return player_view(seat, state)
            await changed.wait()

    def _add_text(self, seat: int, texts: tuple[str, ...], abandons: bool) -> None:
        if len(texts) > self.text_seats.count(seat):
            self.texts = (*self.texts, texts[-1])
            self.text_seats = (*self.text_seats, seat)
        elif not abandons:
            return
        self.abandoned |= abandons
        changed = self.changed
        self.changed = asyncio.Event()
        changed.set()


def player_view(seat: int, state: SessionState) -> SessionState:
    """The state as a session of one player: observations and rewards between the player's turns.

    >>> results = (
    ...     StepResult("go"),
    ...     StepResult("wait", next_player=1),
    ...     StepResult("", done=True, player_rewards=(-1.0, 1.0)),
    ... )
    >>> view = player_view(0, SessionState(results)).results
    >>> [(result.observation, result.reward, result.done) for result in view]
    [('go', 0.0, False), ('go', -1.0, True)]
    """
    view = [StepResult("")]
    mover = -1
    aborted = False
    for result in state.results:
        if mover == seat:
            view.append(StepResult(view[-1].observation, counts=result.counts))
        observation = view[-1].observation
        if result.next_player == seat and result.observation:
            observation = result.observation
        reward = view[-1].reward + _reward_of(seat, result, mover)
        view[-1] = view[-1]._replace(observation=observation, reward=reward, done=result.done)
        aborted = ANSWER_ERROR in result.counts and mover != seat
        mover = result.next_player
    return SessionState(tuple(view), ABORTED_ERROR if aborted else state.error)


def _reward_of(seat: int, result: StepResult, mover: int) -> float:
    if result.player_rewards:
        return result.player_rewards[seat]
    return result.reward if mover == seat else 0.0


class Opponent(Protocol):
    """A player that is not trained: its move in answer to an observation."""

    def __call__(self, observation: Observation, rng: Random, /) -> str: ...


@component
class VersusOpponent:
    """A game of several players as an environment of one: an opponent has all other seats.

    The policy has the seat of the task's column `seat`, 0 by default. The opponent's random numbers
    derive from the task, so rollouts with equal texts meet equal moves.

    Args:
        env_factory: Creates the game.
        opponent: Plays every other seat.
    """

    env_factory: EnvFactory
    opponent: Opponent

    def __call__(self) -> "_SinglePlayerGame":
        return _SinglePlayerGame(self.env_factory(), self.opponent)


class _SinglePlayerGame:
    """A session of one player against opponents."""

    def __init__(self, env: GameEnv, opponent: Opponent) -> None:
        self.env = env
        self.opponent = opponent

    def reset(self, task: Task) -> StepResult:
        self.seat = int(task.columns.get("seat", 0))
        self.rng = make_rng(0, "house", task.key)
        return self._play_opponents(reset_env(self.env, task))

    def step(self, text: str) -> StepResult:
        return self._play_opponents(step_env(self.env, text))

    def close(self) -> None:
        if isinstance(self.env, ClosableEnv):
            self.env.close()

    def _play_opponents(self, result: StepResult) -> StepResult:
        """Play the opponents' moves; returns the result as of the policy's next turn."""
        reward = _reward_of(self.seat, result, self.seat)
        counts = result.counts
        while result.next_player != self.seat and not result.done:
            mover = result.next_player
            result = step_env(self.env, self.opponent(result.observation, self.rng))
            reward += _reward_of(self.seat, result, mover)
        return result._replace(reward=reward, counts=counts)
