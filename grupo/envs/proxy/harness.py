"""An agent of one rollout: a program in a process of its own, or a function in a thread."""

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from grupo.core.types import Task
from grupo.envs import daemon_threads
from grupo.envs.timeouts import failure_from_exception
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_function
from grupo.util.parent_death import ending_with_parent

MAX_ERROR_BYTES = 2000  # of what a program writes to standard error, from the end
LOOPBACK_NAMES = "127.0.0.1,localhost"


@dataclass(frozen=True)
class PolicyAddress:
    """How an agent reaches the policy.

    Args:
        base_url: Base URL of the API, which is that of one rollout.
        api_key: The API key.
        model: Name of the model.
    """

    base_url: str
    api_key: str
    model: str = "policy"


HarnessFunction = Callable[[Task, PolicyAddress], Any]
FUNCTION_ADDRESS = re.compile(r"[^\s:]+:[\w.]+")  # any other text is a command line
PLACEHOLDERS = ("base_url", "api_key", "model", "prompt")


class HarnessError(RuntimeError):
    """The agent failed; the message is the reason."""


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

    The thread is abandoned if the caller is cancelled: Python cannot end it.

    Raises:
        HarnessError: The function raised.
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

    def job() -> None:
        value, error = None, None
        try:
            value = function(task, address)
            value = asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value
        except BaseException as raised:  # an agent that calls sys.exit() fails like any other
            error = raised
        loop.call_soon_threadsafe(settle, value, error)

    daemon_threads.run_in_worker(job)
    return await result


async def run_command(command: str, task: Task, address: PolicyAddress) -> None:
    """Run a program to its end, with the task as a line of JSON on its standard input.

    The program and all processes that it starts are killed if the caller is cancelled.

    Args:
        command: The command line; `{base_url}`, `{api_key}`, `{model}` and `{prompt}` are replaced
            in each argument.
        task: The task.
        address: The address of the policy, which the program has in its environment variables, too.

    Raises:
        HarnessError: The program does not start, or ends with another exit status than 0.
    """
    arguments = command_arguments(command, task, address)
    try:
        process = await asyncio.create_subprocess_exec(
            *ending_with_parent(arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(address),
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"did not start: {error.strerror}") from error
    output = asyncio.create_task(_read_tail(process))
    try:
        await _write_task(process, task)
        status = await process.wait()
    finally:
        _kill_group(process.pid)  # also what it left behind, which may hold its error output open
    if status:
        raise HarnessError(f"ended with status {status}: {_last_line(await output)}")


def command_arguments(command: str, task: Task, address: PolicyAddress) -> Sequence[str]:
    """The arguments of a command line, with the values of the rollout in place of their names.

    >>> command_arguments("run '{prompt}'", Task("k", "2 + 2"), PolicyAddress("http://x/v1", "key"))
    ['run', '2 + 2']
    """
    values = {**vars(address), "prompt": prompt_text(task)}
    arguments = shlex.split(command)
    for name, value in values.items():
        arguments = [argument.replace(f"{{{name}}}", value) for argument in arguments]
    return arguments


def prompt_text(task: Task) -> str:
    """The task's prompt; of messages, the content of the last one."""
    prompt = task.prompt
    return prompt if isinstance(prompt, str) else str(prompt[-1].get("content") or "")


async def _awaited(value: Any) -> Any:
    return await value


def _environment(address: PolicyAddress) -> Mapping[str, str]:
    """The variables of this process, and those that clients of OpenAI read."""
    no_proxy = ",".join(filter(None, [os.environ.get("NO_PROXY"), LOOPBACK_NAMES]))
    return {
        **os.environ,
        "OPENAI_BASE_URL": address.base_url,
        "OPENAI_API_KEY": address.api_key,
        "OPENAI_MODEL": address.model,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


async def _write_task(process: asyncio.subprocess.Process, task: Task) -> None:
    assert process.stdin
    data = {"key": task.key, "prompt": task.prompt, "columns": dict(task.columns)}
    with suppress(ConnectionError):  # the program does not read it
        process.stdin.write(json.dumps(data, default=str).encode() + b"\n")
        await process.stdin.drain()
    process.stdin.close()


async def _read_tail(process: asyncio.subprocess.Process) -> bytes:
    """The end of what the program writes to standard error."""
    assert process.stderr
    tail = b""
    while chunk := await process.stderr.read(1 << 16):
        tail = (tail + chunk)[-MAX_ERROR_BYTES:]
    return tail


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no error output")


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
