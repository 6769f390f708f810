"""The interface of a game environment: one session, its step results, and their validation."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from grupo.core.types import Observation, Task
from grupo.envs.reward_parsing import finite_float
from grupo.util.json_text import without_lone_surrogates

NO_COUNTS: Mapping[str, float] = MappingProxyType({})


class StepResult(NamedTuple):
    """The return value of one environment step.

    Args:
        observation: The next observation; must not be empty unless `done`.
        reward: Reward of the step; in a game of several players, of the player that moved.
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


@runtime_checkable
class ClosableEnv(Protocol):
    """A session that holds a connection or another resource."""

    def close(self) -> None:
        """Release the resource; also while a reset or a step hangs in another thread."""
        ...


EnvFactory = Callable[[], GameEnv]  # creates sessions; the class of a `GameEnv` is one


def reset_env(env: GameEnv, task: Task) -> StepResult:
    """Reset the environment; returns a validated result."""
    first = env.reset(task)
    return _validated(first if isinstance(first, StepResult) else StepResult(first))


def step_env(env: GameEnv, text: str) -> StepResult:
    """Step the environment; returns a validated result."""
    returned: Any = env.step(text)
    return _validated(StepResult(*returned))


def _validated(result: StepResult) -> StepResult:
    """The result with finite floats as rewards and whole characters; raises where it has none."""
    done: Any = result.done  # often a bool of numpy
    if not result.observation and not done:
        raise ValueError("returned no observation, and is not done")
    return result._replace(
        observation=without_lone_surrogates(result.observation),
        reward=finite_float(result.reward),
        done=bool(done),
        player_rewards=tuple(map(finite_float, result.player_rewards)),
    )
