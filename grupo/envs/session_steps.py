"""Steps of a session in a thread of their own, and what becomes of a session whose step hangs."""

from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from grupo.core.types import Task
from grupo.envs import daemon_threads
from grupo.envs.game_env import (
    ClosableEnv,
    EnvFactory,
    GameEnv,
    StepResult,
    reset_env,
    step_env,
)
from grupo.envs.timeouts import CallFailure, call_with_timeout

ANSWER_ERROR = "answer_error"  # reward term of a rollout whose answer makes its environment hang


@dataclass
class SessionState:
    """A session after some texts of the policy.

    Args:
        results: Results of the reset and of every step.
        error: Why the session failed; "" if it did not.
        env: The environment in this state; None if it was evicted, closed or handed out.
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

    def close(self) -> None:
        """Close the environment if it holds a resource; a later step replays the session."""
        with self.lock:
            env = self.env
            if isinstance(env, ClosableEnv):
                self.env = None
        close_env(env)


def close_env(env: GameEnv | None) -> None:
    """Close an environment that holds a resource, in another thread: closing may hang."""
    if isinstance(env, ClosableEnv):
        daemon_threads.run_in_worker(partial(_close_quietly, env))


def _close_quietly(env: ClosableEnv) -> None:
    with suppress(Exception):  # the rollout is over: nothing depends on it
        env.close()


@dataclass(frozen=True)
class SessionSteps:
    """Computes the state of a session from the state one text earlier.

    Args:
        env_factory: Creates sessions.
        time_limit: Seconds that a reset or a step may take.
        answer_error_reward: Reward of a step that exceeds a limit because of its text.
    """

    env_factory: EnvFactory
    time_limit: float
    answer_error_reward: float

    async def advance(
        self, task: Task, texts: tuple[str, ...], previous: SessionState
    ) -> SessionState:
        """The state after `texts`, or one with an error.

        A step that exceeds a limit of time, memory or recursion is repeated once, after a control:
        a new session that replays the texts before it. The last text is the cause if the control
        stays within the limits and the repeated step does not: the session is then over, with
        `answer_error_reward` and the count `answer_error`. Otherwise the environment has failed.

        Args:
            task: The task of the session.
            texts: All texts of the policy, of which the last one is new; empty for the reset.
            previous: The state before the last text.
        """
        step = _Step(self.env_factory, task, texts, previous)
        outcome = await self._run(step, step.take_or_replay)
        if texts and _exceeds_limit(outcome):
            step = _Step(self.env_factory, task, texts, previous)
            control = await self._run(step, step.replay, len(texts) * self.time_limit)
            if not isinstance(control, CallFailure):
                outcome = await self._run(step, step.take_last)
                if _exceeds_limit(outcome):
                    outcome = replace(outcome, answer_error=True)
        if isinstance(outcome, CallFailure) and outcome.answer_error and texts:
            return SessionState((*previous.results, self._answer_error_result()))
        if isinstance(outcome, CallFailure):
            error = f"the environment {outcome.reason} at turn {len(texts)}"
            return SessionState(previous.results, error)
        state = SessionState((*previous.results, outcome), env=step.env)
        if state.done:
            state.close()
        return state

    async def _run(self, step: "_Step", method: Any, time_limit: float = 0.0) -> Any:
        """The result of a method of `step`, or a `CallFailure` and a closed environment."""
        outcome = await call_with_timeout(method, time_limit or self.time_limit)
        if isinstance(outcome, CallFailure):
            close_env(step.env)
        return outcome

    def _answer_error_result(self) -> StepResult:
        return StepResult("", self.answer_error_reward, done=True, counts={ANSWER_ERROR: 1.0})


def _exceeds_limit(outcome: Any) -> bool:
    return isinstance(outcome, CallFailure) and outcome.exceeds_limit


@dataclass
class _Step:
    """One reset or step of a session; holds the environment, so that another thread can close it.

    Args:
        env_factory: Creates sessions.
        task: The task of the session.
        texts: All texts of the policy, of which the last one is new; empty for the reset.
        previous: The state before the last text.
        env: The environment; None before a method has made or taken it.
    """

    env_factory: EnvFactory
    task: Task
    texts: tuple[str, ...]
    previous: SessionState
    env: GameEnv | None = None

    def take_or_replay(self) -> StepResult:
        """The result of the reset, or of the last text in a session that has the others."""
        if not self.texts:
            self.env = self.env_factory()
            return reset_env(self.env, self.task)
        self.env = self.previous.take_env()
        if self.env is None:
            self.replay()
        return self.take_last()

    def replay(self) -> None:
        """Replay all texts but the last one; raises ValueError if the results differ."""
        self.env = self.env_factory()
        replay(self.env, self.task, self.texts[:-1], self.previous.results)

    def take_last(self) -> StepResult:
        """The result of the last text."""
        assert self.env
        return step_env(self.env, self.texts[-1])


def replay(
    env: GameEnv, task: Task, texts: tuple[str, ...], expected_results: Sequence[StepResult]
) -> None:
    """Bring a new environment in the state after `texts`; raises ValueError if results differ."""
    results = [reset_env(env, task), *(step_env(env, text) for text in texts)]
    if results != list(expected_results):
        raise ValueError("replaying the same texts gave other results")
