"""Sessions of a world: where one stands is a fold over what the policy said in it.

A fold of the same words is made once. A session is copied where a rollout goes on from it, so that
rollouts may branch; one that cannot be copied, or is no longer kept, is played again.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from grupo.core.pending_env_steps import pending_env_step
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.reward_parsing import finite_float
from grupo.envs.timeouts import CallFailure, call_with_timeout

MAX_CACHED_ENVS = 2048  # sessions that are kept for rollouts to go on from
NO_COUNTS: Mapping[str, float] = MappingProxyType({})


class StepResult(NamedTuple):
    """What a world answers: its words, what it pays, whether it is over, what is to be counted.

    Where several play, it says to whom it speaks, whose turn it then is, and what it pays to each.
    """

    observation: Observation
    reward: float = 0.0
    done: bool = False
    counts: Mapping[str, float] = NO_COUNTS
    next_player: int = 0
    player_rewards: tuple[float, ...] = ()


class GameEnv(Protocol):
    """One stay in a world, of which the policy's words alone decide the course."""

    def reset(self, task: Task) -> Observation | StepResult:
        """What the world says first."""
        ...

    def step(self, text: str) -> tuple[Observation, float, bool] | StepResult:
        """What it says to the policy's words, what it pays for them, and whether it is over."""
        ...


class EnvFactory(Protocol):
    """Opens sessions."""

    def __call__(self) -> GameEnv: ...


@dataclass
class SessionState:
    """How far a session has come: all that was heard in it, and why it failed, if it has."""

    results: tuple[StepResult, ...] = ()
    error: str = ""
    env: GameEnv | None = None  # as it stands here; None: nobody has it any more
    lock: Lock = field(default_factory=Lock)

    @property
    def done(self) -> bool:
        """Has the world ended it, or failed?"""
        return bool(self.error) or any(one.done for one in self.results[-1:])

    def take_env(self) -> GameEnv | None:
        """A session that stands here, to go on with: a copy, or the only one."""
        with self.lock:
            try:
                return deepcopy(self.env)
            except Exception:  # whatever forbids to copy it
                mine, self.env = self.env, None
                return mine


class SessionCache:
    """Where the sessions of one world stand, by task and by what was said."""

    def __init__(self, env_factory: EnvFactory, time_limit: float, max_concurrent: int) -> None:
        self.env_factory, self.time_limit = env_factory, time_limit
        self.semaphore = asyncio.Semaphore(max_concurrent)
        self.states: dict[tuple[str, str, tuple[str, ...]], asyncio.Future[SessionState]] = {}
        self.states_with_env: deque[SessionState] = deque()

    async def state_after(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        """Where a session stands after these words of the policy's, one text a turn."""
        place = (task.key, repr(task.prompt), texts)
        if place not in self.states:
            self.states[place] = made = asyncio.get_running_loop().create_future()
            try:
                made.set_result(await self._compute_state(task, texts))
            finally:
                if not made.done():  # cancelled: whoever comes next tries again
                    del self.states[place]
                    made.cancel()
        return await self.states[place]

    async def _compute_state(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        before = await self.state_after(task, texts[:-1]) if texts else SessionState()
        if before.error:
            return before
        if before.done:
            return SessionState(before.results, "the policy went on after the world was over")
        with pending_env_step():
            async with self.semaphore:
                go_on = partial(_advance, self.env_factory, task, texts, before)
                answer = await call_with_timeout(go_on, self.time_limit)
        if isinstance(answer, CallFailure):
            return SessionState(before.results, f"the world {answer.reason} at turn {len(texts)}")
        session, heard = answer
        return self._remember(SessionState((*before.results, heard), env=session))

    def _remember(self, state: SessionState) -> SessionState:
        self.states_with_env.append(state)
        while len(self.states_with_env) > MAX_CACHED_ENVS:
            self.states_with_env.popleft().env = None
        return state


def turn_texts(rollout: Rollout) -> tuple[str, ...]:
    """The policy's words turn by turn; a turn begins where the world speaks.

    A turn without parts is none: there was no room left to say anything.

    >>> from grupo.core.types import Action
    >>> a, b = (Action((1,), (0.0,), text=text) for text in "ab")
    >>> turn_texts(Rollout().then("Go!", a).then("", b).then("On!", a))
    ('ab', 'a')
    """
    texts: list[str] = []
    for seen, action in rollout.turns:
        if action.items and (seen or not texts):
            texts.append(action.text)
        elif action.items:
            texts[-1] += action.text
    return tuple(texts)


def _advance(
    env_factory: EnvFactory, task: Task, texts: tuple[str, ...], previous_state: SessionState
) -> tuple[GameEnv, StepResult]:
    """The session one turn later, and what the world said to it."""
    if not texts:
        session = env_factory()
        return session, reset_env(session, task)
    session = previous_state.take_env() or _replay(
        env_factory, task, texts[:-1], previous_state.results
    )
    return session, step_env(session, texts[-1])


def _replay(
    env_factory: EnvFactory,
    task: Task,
    texts: tuple[str, ...],
    expected_results: tuple[StepResult, ...],
) -> GameEnv:
    session = env_factory()
    again = [reset_env(session, task), *(step_env(session, text) for text in texts)]
    if again != list(expected_results):
        raise ValueError("the same words were answered otherwise when played again")
    return session


def reset_env(env: GameEnv, task: Task) -> StepResult:
    """What the world says first."""
    first = env.reset(task)
    return _validated(first if isinstance(first, StepResult) else StepResult(first))


def step_env(env: GameEnv, text: str) -> StepResult:
    """What it says to these words."""
    answer: Any = env.step(text)
    return _validated(StepResult(*answer))


def _validated(result: StepResult) -> StepResult:
    """What a world answered, with numbers that are numbers."""
    if not result.observation and not result.done:
        raise ValueError("it said nothing, and is not over")
    pays = tuple(map(finite_float, result.player_rewards))
    return result._replace(reward=finite_float(result.reward), over=bool(result.done), pays=pays)
