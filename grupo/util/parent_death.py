"""Actions after the end of this process, however it ends: SIGKILL runs no `finally` block."""

import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from grupo.util import end_with_parent

WAIT_FOR_END = 'read -r _; exec "$@"'  # a script of sh: its input ends when this process has ended


def name_prefix() -> str:
    """The start of the names of all things that this process must not leave behind.

    It is another one in each process, also in one that was forked from this one.
    """
    return _name_prefix(os.getpid())


@cache
def _name_prefix(process: int) -> str:
    return f"grupo-{process}-{uuid.uuid4().hex[:12]}-"


def run_after_end(*command: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command once when this process has ended; a second call with the same command is idle.

    A shell waits for the end of this process in a session of its own, so that no signal for the
    terminal or the process group ends it.

    Args:
        command: The program and its arguments.
        environment: Its environment variables, in place of `PATH` alone.
    """
    variables = environment or {"PATH": os.environ.get("PATH", os.defpath)}
    _start_waiting(os.getpid(), command, tuple(variables.items()))


@cache
def _start_waiting(
    process: int, command: tuple[str, ...], variables: tuple[tuple[str, str], ...]
) -> None:
    """Start the shell that waits for the end of process `process`, this one."""
    read_end, _write_end = os.pipe()  # the second is open for as long as this process runs
    shell = subprocess.Popen(
        ["/bin/sh", "-c", WAIT_FOR_END, "sh", *command],
        stdin=read_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=dict(variables),
    )
    os.close(read_end)
    shell.returncode = 0  # this process does not wait for its end


def ending_with_parent(command: Sequence[str]) -> tuple[str, ...]:
    """A command that runs another one, which is killed when this process ends.

    The thread that starts it must run as long as this process: Linux sends the signal when the
    thread ends. Other systems do not send it. Processes that the command starts are not killed: the
    end of their standard input tells them.
    """
    return (
        *(sys.executable, "-I", "-S", str(Path(end_with_parent.__file__)), str(os.getpid())),
        *command,
    )
