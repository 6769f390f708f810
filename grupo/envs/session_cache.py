"""Sessions of a game environment, cached by the texts that the policy generated in them.

The state of a session is a fold over the policy's texts, so it is computed once per sequence of
texts. A rollout that continues a cached session gets a deep copy of its environment, so that
rollouts may branch anywhere. An environment that cannot be copied, or that the cache has evicted,
is replayed from its start.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from grupo.core.pending_env_steps import pending_env_step
from grupo.core.types import Observation, Rollout, Task, turn_text
from grupo.envs.reward_parsing import finite_float
from grupo.envs.timeouts import CallFailure, call_with_timeout

MAX_CACHED_ENVS = 2048  # environments kept for rollouts to continue from; the oldest go first
NO_COUNTS: Mapping[str, float] = MappingProxyType({})

StateKey = tuple[str, str, tuple[str, ...]]  # key and prompt of the task, the policy's texts


class StepResult(NamedTuple):
    """The return value of one environment step.

    Args:
        observation: The next observation; must not be empty unless `done`.
        reward: Reward of the step.
        done: The session is over.
        counts: Numbers that are summed over the steps and become reward terms, by name.
        next_player: In a game of several players, the index of the player that moves next and
            gets the observation.
        player_rewards: In a game of several players, the step's reward of each; replaces `reward`.
    """

    observation: Observation
    reward: float = 0.0
    done: bool = False
    counts: Mapping[str, float] = NO_COUNTS
    next_player: int = 0
    player_rewards: tuple[float, ...] = ()


class GameEnv(Protocol):
    """One session of an environment. Task and texts must determine its course: seed all noise."""

    def reset(self, task: Task) -> Observation | StepResult:
        """Start the session; returns the first observation."""
        ...

    def step(self, text: str) -> tuple[Observation, float, bool] | StepResult:
        """Answer the policy's text with an observation, a reward, and whether it is done."""
        ...


EnvFactory = Callable[[], GameEnv]  # creates sessions; the class of a `GameEnv` is one


@dataclass
class SessionState:
    """A session after some texts of the policy.

    Args:
        results: Results of the reset and of every step.
        error: Why the session failed; "" if it did not.
        env: The environment in this state; None if it was evicted or handed out.
        lock: Guards `env`.
    """

    results: tuple[StepResult, ...] = ()
    error: str = ""
    env: GameEnv | None = None
    lock: Lock = field(default_factory=Lock)

    @property
    def done(self) -> bool:
        """True if the environment ended the session, or failed."""
        return bool(self.error) or any(result.done for result in self.results[-1:])

    def take_env(self) -> GameEnv | None:
        """A copy of the environment to continue with; the only one if it cannot be copied."""
        with self.lock:
            try:
                return deepcopy(self.env)
            except Exception:  # an environment may forbid copies in any way
                env = self.env
                self.env = None
                return env


class SessionCache:
    """States of one environment's sessions, by task and by the texts of the policy.

    Args:
        env_factory: Creates sessions.
        time_limit: Seconds that a reset or a step may take.
        max_concurrent: Sessions that are stepped at the same time.
    """

    def __init__(self, env_factory: EnvFactory, time_limit: float, max_concurrent: int) -> None:
        self.env_factory = env_factory
        self.time_limit = time_limit
        self.semaphore = asyncio.Semaphore(max_concurrent)
        self.states: dict[StateKey, asyncio.Task[SessionState]] = {}
        self.states_with_env: deque[SessionState] = deque()

    async def state_after(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        """The state of a session of `task` after these texts of the policy, one per turn."""
        key = (task.key, repr(task.prompt), texts)
        if key not in self.states:
            computation = asyncio.create_task(self._compute_state(task, texts))
            computation.add_done_callback(partial(self._forget_failure, key))
            self.states[key] = computation
        # shield: a caller that is cancelled does not affect other callers for the same state
        return await asyncio.shield(self.states[key])

    def copy_env(self, task: Task, texts: tuple[str, ...], state: SessionState) -> GameEnv:
        """A copy of the environment in `state`, which is that after `texts`."""
        return state.take_env() or _replay(self.env_factory, task, texts, state.results)

    def _forget_failure(self, key: StateKey, computation: asyncio.Task[SessionState]) -> None:
        if computation.cancelled() or computation.exception():  # the next caller computes it again
            del self.states[key]

    async def _compute_state(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        previous = await self.state_after(task, texts[:-1]) if texts else SessionState()
        if previous.error:
            return previous
        if previous.done:
            return SessionState(previous.results, "the policy acted after the environment was done")
        with pending_env_step():
            async with self.semaphore:
                call = partial(_advance, self.env_factory, task, texts, previous)
                outcome = await call_with_timeout(call, self.time_limit)
        if isinstance(outcome, CallFailure):
            error = f"the environment {outcome.reason} at turn {len(texts)}"
            return SessionState(previous.results, error)
        env, result = outcome
        return self._remember(SessionState((*previous.results, result), env=env))

    def _remember(self, state: SessionState) -> SessionState:
        self.states_with_env.append(state)
        while len(self.states_with_env) > MAX_CACHED_ENVS:
            self.states_with_env.popleft().env = None
        return state


def turn_texts(rollout: Rollout) -> tuple[str, ...]:
    """The policy's texts turn by turn; a turn begins with an observation of the environment.

    Consecutive actions without an observation between them are one turn. An action without tokens,
    for which the context had no room, is no turn.

    >>> from grupo.core.types import Action
    >>> a, b = (Action((1,), (0.0,), text=text) for text in "ab")
    >>> rollout = Rollout().append_turn("Go!", a).append_turn("", b).append_turn("Again!", a)
    >>> turn_texts(rollout)
    ('ab', 'a')
    """
    texts: list[str] = []
    for observation, action in rollout.turns:
        if action.items and (observation or not texts):
            texts.append(turn_text(observation, action))
        elif action.items:
            texts[-1] += action.text
    return tuple(texts)


def _advance(
    env_factory: EnvFactory, task: Task, texts: tuple[str, ...], previous_state: SessionState
) -> tuple[GameEnv, StepResult]:
    """The environment one step later, and the result of that step."""
    if not texts:
        env = env_factory()
        return env, reset_env(env, task)
    env = previous_state.take_env() or _replay(
        env_factory, task, texts[:-1], previous_state.results
    )
    return env, step_env(env, texts[-1])


def _replay(
    env_factory: EnvFactory,
    task: Task,
    texts: tuple[str, ...],
    expected_results: tuple[StepResult, ...],
) -> GameEnv:
    """A new environment in the state after `texts`; raises ValueError if its results differ."""
    env = env_factory()
    results = [reset_env(env, task), *(step_env(env, text) for text in texts)]
    if results != list(expected_results):
        raise ValueError("replaying the same texts gave other results")
    return env


def reset_env(env: GameEnv, task: Task) -> StepResult:
    """Reset the environment; returns a validated result."""
    first = env.reset(task)
    return _validated(first if isinstance(first, StepResult) else StepResult(first))


def step_env(env: GameEnv, text: str) -> StepResult:
    """Step the environment; returns a validated result."""
    returned: Any = env.step(text)
    return _validated(StepResult(*returned))


def _validated(result: StepResult) -> StepResult:
    """The result with finite floats as rewards; raises where it has none."""
    if not result.observation and not result.done:
        raise ValueError("returned no observation, and is not done")
    return result._replace(
        reward=finite_float(result.reward),
        done=bool(result.done),
        player_rewards=tuple(map(finite_float, result.player_rewards)),
    )
