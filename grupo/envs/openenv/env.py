"""Any environment server of OpenEnv as an environment factory, and episodes of it as tasks."""

import re
from collections.abc import Sequence
from functools import partial

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.core.types import Task
from grupo.envs.bearer_token import bearer_token, check_url
from grupo.envs.games.invalid_actions import InvalidActionPolicy, RepeatObservation
from grupo.envs.openenv.connection import Connection, action_schema, import_openenv
from grupo.envs.openenv.local_server import local_url
from grupo.envs.openenv.session import (
    MAX_SEED,
    RESET_COLUMN,
    ActionParser,
    OpenEnvSession,
    Renderer,
)
from grupo.envs.openenv.text import action_by_schema, describe_actions, render_fields
from grupo.tasks.base import LazyTasks
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

APP_PATTERN = re.compile(r"\w+(\.\w+)*:\w+")
SCHEMES = ("http://", "https://", "ws://", "wss://")


@component
class OpenEnv:
    """Environment factory for an environment server of OpenEnv; pass it to `MultiTurn`.

    Every rollout has a connection of its own, and with it a session in the server. The reward is
    the sum of the step rewards; a step without a reward has 0. A task's column `reset` holds the
    arguments of its reset; the seed is added, and the server leaves out those that its environment
    does not take. Reward term: `invalid_actions`.

    Args:
        address: URL of the server. Or an application as uvicorn takes it, such as `server.app:app`
            in the current folder: each process then starts a server for it.
        render: Function from the fields of an observation to the policy's text or messages.
        parse: Function from the policy's text and the JSON schema of actions to the fields of an
            action; it raises ValueError if there is none.
        invalid_action: Step result of a text that is no action, or whose action the server refuses:
            `RepeatObservation(penalty)` or `EndEpisode(reward)`.
        instructions: Text before the first observation. The default describes the actions where
            `action_by_schema` expects JSON.
        token_env: Environment variable that holds the token of the server; "" for a server without
            tokens. The token is never written.
    """

    address: str
    render: Renderer = render_fields
    parse: ActionParser = action_by_schema
    invalid_action: InvalidActionPolicy = RepeatObservation()
    instructions: str = ""
    token_env: str = ""

    def __post_init__(self) -> None:
        if not self._has_url and not APP_PATTERN.fullmatch(self.address):
            raise ConfigError(
                f"address: {self.address!r}. Allowed: a URL that begins with"
                f" {', '.join(SCHEMES)}, or module:attribute."
            )
        if self._has_url:
            check_url("address", self.address)
        elif self.token_env:
            raise ConfigError("token_env: only a server at a URL takes it. Leave it out.")

    def check(self) -> None:
        """Raises `ConfigError` if OpenEnv is not installed, or the server does not answer."""
        bearer_token(self.token_env)
        import_openenv()
        action_schema(self._url(), self.token_env)

    def __call__(self) -> OpenEnvSession:
        url = self._url()
        schema = action_schema(url, self.token_env)
        described = describe_actions(schema) if self.parse is action_by_schema else ""
        return OpenEnvSession(
            partial(Connection, url, self.token_env),
            schema,
            self.render,
            self.parse,
            invalid_action=self.invalid_action,
            introduction=self.instructions or described,
            token_env=self.token_env,
        )

    @property
    def _has_url(self) -> bool:
        return self.address.startswith(SCHEMES)

    def _url(self) -> str:
        return self.address.rstrip("/") if self._has_url else local_url(self.address)


@component
class OpenEnvTasks:
    """Episodes of an environment of OpenEnv; the column `reset` holds the seed of an episode.

    Args:
        env: The environment.
        count: Number of episodes.
        seed: Seed that those of the episodes derive from; another one gives other episodes.
    """

    env: OpenEnv
    count: PositiveInt
    seed: NonNegativeInt = 0

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the address, since the server provides the observations."""
        address = self.env.address

        def make_task(index: int) -> Task:
            seed = derive_key(self.seed, "episode", index) % MAX_SEED
            columns = {RESET_COLUMN: {"seed": seed}}
            return Task(f"{address} {seed}", address, seed, source=address, columns=columns)

        return LazyTasks(self.count, make_task)
