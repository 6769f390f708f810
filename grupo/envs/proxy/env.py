"""Agents behind an API: any program that calls OpenAI's chat completions, as an environment."""

import re
import shlex
import shutil
from functools import cached_property, partial

from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.ranges import FiniteSeconds, NonEmptyString, PositiveInt
from grupo.core.types import Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.proxy.harness import HarnessFunction, PolicyAddress, run_command, run_function
from grupo.envs.reward_term import RewardTerm
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_function
from grupo.util.optional_deps import optional_dependency

ADDRESS = re.compile(r"[^\s:]+:[\w.]+")  # module:name or file.py:name; anything else is a command
RESERVED_TERMS = ("agent_reward", "calls", "contexts", "tool_calls", "call_limit")
PLACEHOLDERS = ("base_url", "api_key", "model", "prompt")


@component
class ProxyEnv:
    """An agent that calls the policy over an API of OpenAI's form, as the environment of a task.

    Each rollout starts the agent once, with a base URL of its own. Every chat completion that the
    agent requests is a turn of the rollout, in the exact tokens and with the log-probabilities that
    the policy sampled. A request whose messages continue an earlier conversation, with the answer
    unchanged, continues its tokens. Any other request begins a context of its own, which becomes a
    row of the batch. The rollout is over when the agent ends.

    The policy samples from the distribution that is trained: `temperature`, `top_p` and other
    options of a request that would change it do not apply, and are counted.

    Reward terms beside those of `rewards`: `agent_reward` (the number that a function returned),
    `calls`, `contexts`, `tool_calls`, `call_limit` (1 if the agent wanted more calls than
    `max_calls`), and `not_applied/OPTION`, the number of calls with an option that did not apply.

    Args:
        harness: The agent. A function of the task and the `PolicyAddress`, plain or async, or the
            address of one (`file.py:name`, `module:name`), which runs in a thread. It may return a
            number, or a mapping of numbers of which "score" is the reward. Any other text is a
            command line, which runs in a process of its own, with OPENAI_BASE_URL and
            OPENAI_API_KEY set, `{base_url}`, `{api_key}`, `{model}` and `{prompt}` replaced in its
            arguments, and the task as a line of JSON on its standard input.
        rewards: Reward terms that score the whole rollout.
        max_calls: Calls after which a rollout ends; it is scored as it is.
        time_limit: Seconds that the agent may take from an answer to its next call or its end, and
            that one call of a reward function may take.
        max_concurrent: Agents at work at the same time, from their start to their end.
        on_failure: Decides the result of a rollout whose agent or reward failed.
    """

    harness: HarnessFunction | NonEmptyString
    rewards: tuple[RewardTerm, ...] = ()
    max_calls: PositiveInt = 32
    time_limit: FiniteSeconds = 60.0
    max_concurrent: PositiveInt = 64
    on_failure: FailureHandler = drop_rollout

    def __post_init__(self) -> None:
        names = [term.name for term in self.rewards]
        if len({*names, *RESERVED_TERMS}) < len(names) + len(RESERVED_TERMS):
            raise ConfigError(
                f"rewards: named {names}. Allowed: no name twice, none of {RESERVED_TERMS}."
            )
        if isinstance(self.harness, str) and not ADDRESS.fullmatch(self.harness):
            _check_command(self.harness)

    def check(self) -> None:
        """Raises `ConfigError` if the server's library or the agent is missing."""
        with optional_dependency("aiohttp", "proxy"):
            import aiohttp  # noqa: F401
        if not isinstance(self.harness, str):
            return
        if ADDRESS.fullmatch(self.harness):
            import_function(self.harness)
        elif not shutil.which(program := shlex.split(self.harness)[0]):
            raise ConfigError(
                f"harness: there is no program {program!r}. Allowed: a command line whose program"
                " is on the PATH, or file.py:function."
            )

    def open(self) -> Env:
        """The environment with agents of its own, for use in one event loop."""
        with optional_dependency("aiohttp", "proxy"):
            from grupo.envs.proxy.sessions import ProxySessions
        return ProxySessions(self)

    async def run_harness(self, task: Task, address: PolicyAddress) -> object:
        """Run the agent on a task to its end; returns its value."""
        return await self._run(task, address)

    @cached_property
    def _run(self) -> "partial[object]":
        if isinstance(self.harness, str) and not ADDRESS.fullmatch(self.harness):
            return partial(run_command, self.harness)
        is_address = isinstance(self.harness, str)
        function = import_function(self.harness) if is_address else self.harness
        return partial(run_function, function)


def _check_command(command: str) -> None:
    """Raise `ConfigError` for a command line that cannot be split, or an unknown placeholder."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"harness: {command!r}: {error}. Allowed: a command line.") from error
    if not arguments:
        raise ConfigError(f"harness: {command!r}. Allowed: a command line, or file.py:function.")
    for name in re.findall(r"(?<!\$)\{(\w+)\}", command):
        if name not in PLACEHOLDERS:
            raise ConfigError(f"harness: {{{name}}} is unknown. {suggest(name, PLACEHOLDERS)}")
