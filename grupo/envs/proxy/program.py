"""An agent that is a program, in a process of its own."""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from grupo.core.types import Task
from grupo.envs.proxy.policy_address import PolicyAddress
from grupo.util.parent_death import ending_with_parent

MAX_ERROR_BYTES = 2000  # of what a program writes to standard error, from the end
LOOPBACK_NAMES = "127.0.0.1,localhost"


class HarnessError(RuntimeError):
    """The agent failed; the message is the reason."""


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
    # a pipe of our own: asyncio waits for the end of its pipes, which other processes may hold open
    read_end, write_end = os.pipe()
    output = asyncio.create_task(_read_tail(read_end))
    try:
        process = await asyncio.create_subprocess_exec(
            *ending_with_parent(arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=write_end,
            env=_environment(address),
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"did not start: {error.strerror}") from error
    finally:
        os.close(write_end)
    try:
        await _write_task(process, task)
        status = await process.wait()
    finally:
        _kill_group(process.pid)  # with what it has left behind
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


async def _read_tail(read_end: int) -> bytes:
    """The end of what is written to a pipe."""
    reader = asyncio.StreamReader()
    pipe = os.fdopen(read_end, "rb")
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    tail = b""
    try:
        while chunk := await reader.read(1 << 16):
            tail = (tail + chunk)[-MAX_ERROR_BYTES:]
    finally:
        transport.close()
    return tail


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no error output")


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
