"""Any Gymnasium environment as a game in text."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.types import Task
from grupo.envs.daemon_threads import call_in_worker
from grupo.envs.game_env import StepResult
from grupo.envs.games.gym_text import parse_numbers, render_numbers
from grupo.envs.games.invalid_actions import InvalidActionPolicy, RepeatObservation
from grupo.tasks.base import LazyTasks
from grupo.util.errors import ConfigError, suggest
from grupo.util.loader_errors import loader_errors
from grupo.util.optional_deps import optional_dependency
from grupo.util.rng import derive_key

CHECK_SECONDS = 60.0  # in which an environment must have been made and reset
MAX_SEED = 1 << 31  # seeds of Gymnasium's environments lie below
Renderer = Callable[[Any], str]  # from an observation of the environment to the policy's text
ActionParser = Callable[[str], Any]  # from the policy's text to an action; ValueError if it is none


class GymnasiumGame:
    """A session of an environment with Gymnasium's interface.

    Args:
        make_env: Makes the environment of a task.
        seed_of: The seed of a task.
        observe: Makes the policy's text of the environment and its observation.
        parse: Makes an action of the policy's text; raises ValueError if it is none.
        invalid_action: Decides the step result of a text that is no action.
        introduce: The text before the first observation, from the environment.
    """

    def __init__(
        self,
        make_env: Callable[[Task], Any],
        seed_of: Callable[[Task], int],
        observe: Callable[[Any, Any], str],
        parse: ActionParser,
        *,
        invalid_action: InvalidActionPolicy = RepeatObservation(),
        introduce: Callable[[Any], str] = lambda env: "",
    ) -> None:
        self.make_env = make_env
        self.seed_of = seed_of
        self.observe = observe
        self.parse = parse
        self.invalid_action = invalid_action
        self.introduce = introduce

    def reset(self, task: Task) -> str:
        """The introduction and the first observation; the task's seed determines all noise."""
        self.env = self.make_env(task)
        observation, _ = self.env.reset(seed=self.seed_of(task))
        self._observe(observation)
        return self.introduce(self.env) + self.observation

    def step(self, text: str) -> StepResult:
        """The result of the action in `text`, or that of the invalid-action policy."""
        action = self._parse_action(text)
        result = self.invalid_action(self) if action is None else self.take(action)
        invalid = {"invalid_actions": float(action is None)}
        return result._replace(counts={**result.counts, **invalid})

    def take(self, action: Any) -> StepResult:
        """The result of an action; the count `truncated` is 1 at the environment's step limit."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        self._observe(observation)
        counts = {"truncated": float(truncated and not terminated)}
        return StepResult(self.observation, float(reward), bool(terminated or truncated), counts)

    def _observe(self, observation: Any) -> None:
        text = self.observe(self.env, observation)
        if not isinstance(text, str) or not text:
            raise ValueError(f"render returned {text!r}. Allowed: a text that is not empty.")
        self.observation = text

    def _parse_action(self, text: str) -> Any:
        """The action in `text`; None if there is none that the environment allows."""
        space = self.env.action_space
        try:
            action = self.parse(text)
        except ValueError:
            return None
        if isinstance(action, np.ndarray) and np.issubdtype(space.dtype, np.floating):
            action = action.astype(space.dtype)
        return action if space.contains(action) else None


@component
class Gymnasium:
    """Environment factory for a Gymnasium environment; pass it to `MultiTurn`.

    The reward is the sum of the step rewards, which `MultiTurn` keeps for each turn. A task's
    reference answer is the seed of its reset: rollouts of a task with equal texts have equal
    observations. Reward terms: `invalid_actions`, and `truncated` if the environment's own limit
    of steps ended the episode.

    Args:
        env_id: Gymnasium id; `module:Id-v0` first imports the module that registers it.
        render: Function from an observation to the policy's text.
        parse: Function from the policy's text to an action; it raises ValueError if there is none.
        invalid_action: Step result of a text that is no action: `RepeatObservation(penalty)`,
            `TakeAction(action, penalty)` or `EndEpisode(reward)`.
        kwargs: Pairs of an argument of `gymnasium.make` and its value.
        instructions: Text before the first observation, such as the names of the actions.
    """

    env_id: str
    render: Renderer = render_numbers
    parse: ActionParser = parse_numbers
    invalid_action: InvalidActionPolicy = RepeatObservation()
    kwargs: tuple[tuple[str, Any], ...] = ()
    instructions: str = ""

    def check(self) -> None:
        """Raises `ConfigError` if there is no such environment, it hangs, or `render` misfits."""
        with loader_errors(f"env: {self.env_id}"):
            call_in_worker(partial(self().reset, Task(self.env_id, "", 0)), CHECK_SECONDS)

    def __call__(self) -> GymnasiumGame:
        return GymnasiumGame(
            lambda task: make_gymnasium_env(self.env_id, **dict(self.kwargs)),
            lambda task: int(task.reference_answer),
            lambda _, observation: self.render(observation),
            self.parse,
            invalid_action=self.invalid_action,
            introduce=lambda env: self.instructions,
        )


def make_gymnasium_env(env_id: str, **kwargs: Any) -> Any:
    """The environment, without the wrapper that prints warnings.

    Raises:
        ConfigError: Gymnasium is not installed, or has no such environment.
    """
    # an environment may import pygame, which prints a greeting
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with optional_dependency("Gymnasium", "agents"):
        import gymnasium
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        hint = suggest(env_id, gymnasium.registry)
        raise ConfigError(f"env: Gymnasium has no environment {env_id!r}. {hint}") from error


@component
class GymnasiumTasks:
    """Episodes of a Gymnasium environment; the reference answer is the seed of an episode.

    Args:
        env: The environment.
        count: Number of episodes.
        seed: Seed that those of the episodes derive from; another one gives other episodes.
    """

    env: Gymnasium
    count: PositiveInt
    seed: NonNegativeInt = 0

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the first observation."""
        game = self.env()

        def make_task(index: int) -> Task:
            seed = derive_key(self.seed, "episode", index) % MAX_SEED
            task = Task(f"{self.env.env_id} {seed}", "", seed, source=self.env.env_id)
            return replace(task, prompt=game.reset(task))

        return LazyTasks(self.count, make_task)
