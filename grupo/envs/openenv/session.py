"""A rollout in an environment of OpenEnv: one connection, closed when the rollout is over."""

import weakref
from collections.abc import Callable
from typing import Any

from grupo.core.types import Observation, Task
from grupo.envs.bearer_token import without_token
from grupo.envs.game_env import StepResult
from grupo.envs.games.invalid_actions import InvalidActionPolicy
from grupo.envs.openenv.connection import Connection, InvalidActionError
from grupo.envs.openenv.text import Fields
from grupo.envs.openenv.validate import checked_result
from grupo.util.rng import derive_key

MAX_SEED = 1 << 31
RESET_COLUMN = "reset"  # of a task: the arguments of the environment's reset
Renderer = Callable[[Fields], Observation]  # from an observation to what the policy reads
ActionParser = Callable[[str, Fields], Fields]  # from the policy's text and the schema to an action


class OpenEnvSession:
    """A session of an environment of OpenEnv.

    Args:
        connect: Makes the connection.
        schema: The JSON schema of actions.
        render: Makes the policy's observation of the environment's.
        parse: Makes an action of the policy's text; raises ValueError if it is none.
        invalid_action: Decides the step result of a text that is no action.
        introduction: The text before the first observation.
        token_env: Environment variable whose value no observation may hold, or "".
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        schema: Fields,
        render: Renderer,
        parse: ActionParser,
        *,
        invalid_action: InvalidActionPolicy,
        introduction: str,
        token_env: str,
    ) -> None:
        self.connection = connect()
        self.schema = schema
        self.render = render
        self.parse = parse
        self.invalid_action = invalid_action
        self.introduction = introduction
        self.token_env = token_env
        finalizer = weakref.finalize(self, self.connection.close)
        finalizer.atexit = False  # the end of the process closes the connection

    def __deepcopy__(self, memo: dict[int, Any]) -> "OpenEnvSession":
        raise TypeError("a connection cannot be copied")

    def reset(self, task: Task) -> StepResult:
        """The introduction and the first observation."""
        result = self._result(self.connection.reset(reset_arguments(task)))
        return result._replace(observation=with_introduction(self.introduction, result.observation))

    def step(self, text: str) -> StepResult:
        """The result of the action in `text`, or that of the invalid-action policy."""
        action = self._parse_action(text)
        result = None if action is None else self._try(action)
        counts = {"invalid_actions": float(result is None)}
        result = result or self.invalid_action(self)
        return result._replace(counts={**result.counts, **counts})

    def take(self, action: Fields) -> StepResult:
        """The result of an action."""
        return self._result(self.connection.step(action))

    def close(self) -> None:
        """Close the connection; ends a reset or step that waits for the server."""
        self.connection.close()

    def _parse_action(self, text: str) -> Fields | None:
        try:
            return self.parse(text, self.schema)
        except ValueError:
            return None

    def _try(self, action: Fields) -> StepResult | None:
        """The result of an action; None if the server refuses it."""
        try:
            return self.take(action)
        except InvalidActionError:
            return None

    def _result(self, result: Any) -> StepResult:
        fields, reward, done = checked_result(result)
        observation = self.render(without_token(fields, self.token_env))
        self.observation = observation
        return StepResult(observation, reward, done)


def reset_arguments(task: Task) -> dict[str, Any]:
    """The arguments of a task's reset; the seed is that of its column `reset`, or of its key."""
    seed = derive_key(0, "openenv", task.key) % MAX_SEED
    return {"seed": seed, **task.columns.get(RESET_COLUMN, {})}


def with_introduction(introduction: str, observation: Observation) -> Observation:
    """The observation after a text, which is a message of the user if it is a chat."""
    if not introduction or isinstance(observation, str):
        return f"{introduction}{observation}"
    return ({"role": "user", "content": introduction}, *observation)
