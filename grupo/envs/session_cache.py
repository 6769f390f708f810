"""Sessions of a game environment, cached by the texts that the policy generated in them.

The state of a session is a fold over the policy's texts, so it is computed once per sequence of
texts. A rollout that continues a cached session gets a deep copy of its environment, so that
rollouts may branch anywhere. An environment that cannot be copied, or that the cache has evicted,
is replayed from its start.
"""

import asyncio
from collections import deque
from functools import partial

from grupo.core.pending_env_steps import pending_env_step
from grupo.core.types import Rollout, Task, turn_text
from grupo.envs.game_env import GameEnv
from grupo.envs.session_steps import SessionState, SessionSteps, replay

MAX_CACHED_ENVS = 2048  # environments kept for rollouts to continue from; the oldest go first
StateKey = tuple[str, str, tuple[str, ...]]  # key and prompt of the task, the policy's texts


class SessionCache:
    """States of one environment's sessions, by task and by the texts of the policy.

    Args:
        steps: Computes a state from the one before it.
        max_concurrent: Sessions that are stepped at the same time.
    """

    def __init__(self, steps: SessionSteps, max_concurrent: int) -> None:
        self.steps = steps
        self.semaphore = asyncio.Semaphore(max_concurrent)
        self.states: dict[StateKey, asyncio.Task[SessionState]] = {}
        self.states_with_env: deque[SessionState] = deque()

    async def state_after(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        """The state of a session of `task` after these texts of the policy, one per turn."""
        key = state_key(task, texts)
        if key not in self.states:
            computation = asyncio.create_task(self._compute_state(task, texts))
            computation.add_done_callback(partial(self._forget_failure, key))
            self.states[key] = computation
        # shield: a caller that is cancelled does not affect other callers for the same state
        return await asyncio.shield(self.states[key])

    def copy_env(self, task: Task, texts: tuple[str, ...], state: SessionState) -> GameEnv:
        """A copy of the environment in `state`, which is that after `texts`."""
        env = state.take_env()
        if env is None:
            env = self.steps.env_factory()
            replay(env, task, texts, state.results)
        return env

    def close_sessions(self, task: Task, texts: tuple[str, ...]) -> None:
        """Close the environments of a rollout that is over, after these texts and all beginnings.

        They may be needed again, to branch: they are then replayed.
        """
        for length in range(len(texts) + 1):
            computation = self.states.get(state_key(task, texts[:length]))
            if computation and computation.done() and not _has_failed(computation):
                computation.result().close()

    def close_all(self) -> None:
        """Close the environments of all sessions."""
        for state in self.states_with_env:
            state.close()

    def _forget_failure(self, key: StateKey, computation: asyncio.Task[SessionState]) -> None:
        if _has_failed(computation):  # the next caller computes it again
            del self.states[key]

    async def _compute_state(self, task: Task, texts: tuple[str, ...]) -> SessionState:
        previous = await self.state_after(task, texts[:-1]) if texts else SessionState()
        if previous.error:
            return previous
        if previous.done:
            return SessionState(previous.results, "the policy acted after the environment was done")
        with pending_env_step():
            async with self.semaphore:
                state = await self.steps.advance(task, texts, previous)
        return self._remember(state) if state.env else state

    def _remember(self, state: SessionState) -> SessionState:
        self.states_with_env.append(state)
        while len(self.states_with_env) > MAX_CACHED_ENVS:
            evicted = self.states_with_env.popleft()
            evicted.close()
            evicted.env = None
        return state


def state_key(task: Task, texts: tuple[str, ...]) -> StateKey:
    """The key of a session of `task` after these texts of the policy."""
    return task.key, repr(task.prompt), texts


def _has_failed(computation: asyncio.Task[SessionState]) -> bool:
    return computation.cancelled() or computation.exception() is not None


def turn_texts(rollout: Rollout) -> tuple[str, ...]:
    """The policy's texts turn by turn; a turn begins with an observation of the environment.

    Consecutive responses without an observation between them are one turn. A response without
    tokens, for which the context had no room, is no turn.

    >>> from grupo.core.types import Response
    >>> a, b = (Response((1,), (0.0,), text=text) for text in "ab")
    >>> rollout = Rollout().append_turn("Go!", a).append_turn("", b).append_turn("Again!", a)
    >>> turn_texts(rollout)
    ('ab', 'a')
    """
    texts: list[str] = []
    for observation, response in rollout.turns:
        if response.items and (observation or not texts):
            texts.append(turn_text(observation, response))
        elif response.items:
            texts[-1] += response.text
    return tuple(texts)
