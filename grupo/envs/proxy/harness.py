"""An agent of one rollout: a program in a process of its own, or a function in a thread."""

import asyncio
import re
import shlex
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from grupo.core.types import Task
from grupo.envs.proxy.agent_thread import AgentThread
from grupo.envs.proxy.policy_address import PolicyAddress
from grupo.envs.proxy.program import HarnessError, run_command
from grupo.envs.timeouts import failure_from_exception
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_function

HarnessFunction = Callable[[Task, PolicyAddress], Any]
FUNCTION_ADDRESS = re.compile(r"[^\s:]+:[\w.]+")  # any other text is a command line
PLACEHOLDERS = ("base_url", "api_key", "model", "prompt")


async def run_harness(harness: HarnessFunction | str, task: Task, address: PolicyAddress) -> Any:
    """Run an agent to its end; returns the value of a function.

    Raises:
        HarnessError: The agent failed.
    """
    if not isinstance(harness, str):
        return await run_function(harness, task, address)
    if FUNCTION_ADDRESS.fullmatch(harness):
        return await run_function(import_function(harness), task, address)
    return await run_command(harness, task, address)


def check_installed(harness: HarnessFunction | str) -> None:
    """Raise `ConfigError` if the function or the program of an agent is missing."""
    if not isinstance(harness, str):
        return
    if FUNCTION_ADDRESS.fullmatch(harness):
        import_function(harness)
    elif not shutil.which(program := shlex.split(harness)[0]):
        raise ConfigError(
            f"harness: there is no program {program!r}. Allowed: a command line whose program is on"
            " the PATH, or file.py:function."
        )


def check_command(command: HarnessFunction | str) -> None:
    """Raise `ConfigError` for a command line that cannot be split, or an unknown placeholder."""
    if not isinstance(command, str) or FUNCTION_ADDRESS.fullmatch(command):
        return
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"harness: {command!r}: {error}. Allowed: a command line.") from error
    if not arguments:
        raise ConfigError(f"harness: {command!r}. Allowed: a command line, or file.py:function.")
    for name in re.findall(r"(?<!\$)\{(\w+)\}", command):
        if name not in PLACEHOLDERS:
            raise ConfigError(f"harness: {{{name}}} is unknown. {suggest(name, PLACEHOLDERS)}")


async def run_function(function: HarnessFunction, task: Task, address: PolicyAddress) -> Any:
    """The value of a function, plain or async, which runs in a daemon thread of its own.

    A coroutine is cancelled if the caller is. The thread of a plain function goes on.

    Raises:
        HarnessError: The function raised, or was not started.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if result.done():  # the caller was cancelled
            return
        if error:
            result.set_exception(HarnessError(failure_from_exception(error).reason))
        else:
            result.set_result(value)

    thread = AgentThread(
        partial(function, task, address), partial(loop.call_soon_threadsafe, settle)
    )
    thread.start()
    try:
        return await result
    finally:
        thread.stop()
