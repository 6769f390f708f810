"""Running one program in a sandbox: its input, its output up to a limit, and its end."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from grupo.envs.tools.backends.program import STARTED
from grupo.envs.tools.backends.protocol import MAX_OUTPUT_BYTES, ProgramLimits, SandboxBackend
from grupo.util.errors import ConfigError

CHUNK_BYTES = 1 << 16
MAX_WAIT_SECONDS = 1e6  # for longer times, `epoll` raises an error
END_TIMEOUT = 1.0  # seconds from the kill until the last process of the sandbox has ended
KILLED = -signal.SIGKILL  # the exit code of a launcher that ran until a limit was reached
CHECK_LIMITS = ProgramLimits(time_limit=30.0, memory_mib=512, disk_mib=16)


class LaunchError(ConfigError):
    """A launcher ended before it started the program, for example because memory ran out.

    Args:
        backend: The backend whose launcher it is.
        cause: The first line that the launcher wrote.
    """

    def __init__(self, backend: SandboxBackend, cause: str) -> None:
        super().__init__(
            f"sandbox: {type(backend).__name__} ended before it started the program: {cause}"
        )
        self.cause = cause


def run_program(
    backend: SandboxBackend, code: str, limits: ProgramLimits, packages: Sequence[Path] = ()
) -> str:
    """The program's output, and a last line with the reason if it failed or was stopped.

    Raises:
        UnicodeEncodeError: The program is no valid text: it has a lone surrogate. Nothing is
            started.
        ConfigError: The backend is not installed.
        LaunchError: The launcher ended before it started the program.
    """
    program = code.encode()
    with backend.launch(limits, packages) as launch:
        process = subprocess.Popen(
            launch.command,
            env=launch.environment,
            pass_fds=launch.pass_fds,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        with process:
            try:
                output, message = _exchange(process, program, limits.time_limit)
            finally:
                _kill(process)
    before, is_started, printed = output.partition(STARTED)
    if not is_started and process.returncode != KILLED:
        raise LaunchError(
            backend, _cause(before.decode(errors="replace")) or f"exit code {process.returncode}"
        )
    text = printed[:MAX_OUTPUT_BYTES].decode(errors="replace").rstrip()
    return "\n".join(filter(None, (text, message)))


def check_works(backend: SandboxBackend) -> None:
    """Raises `ConfigError` if a backend cannot run a program that prints one word."""
    if failure := trial_failure(backend, CHECK_LIMITS):
        raise ConfigError(
            f"sandbox: {type(backend).__name__} does not work on this machine: {failure}."
            " Allowed: a machine with user namespaces in which this user may mount /proc; or remove"
            " the tool."
        )


def trial_failure(
    backend: SandboxBackend, limits: ProgramLimits, packages: Sequence[Path] = ()
) -> str:
    """Why a program that prints one word fails, in one line; "" if it does not."""
    try:
        output = run_program(backend, "print('works')", limits, packages)
    except LaunchError as error:
        return error.cause
    return "" if output == "works" else _cause(output) or "it printed nothing"


def _cause(output: str) -> str:
    """The first line that is no part of a traceback's frames, at most 200 characters."""
    lines = [line for line in output.splitlines() if not line.startswith(("Traceback", " "))]
    return "".join(lines[:1])[:200]


def _exchange(
    process: "subprocess.Popen[bytes]", program: bytes, time_limit: float
) -> tuple[bytes, str]:
    """Output of a program, and how it failed; "" if it succeeded."""
    deadline = time.monotonic() + time_limit
    stopped = f"(stopped after {time_limit} s)"
    output = bytearray()
    try:
        for chunk in _read_while_writing(process, program, deadline):
            output += chunk
            if len(output) > len(STARTED) + MAX_OUTPUT_BYTES:
                return bytes(output), f"(stopped after {MAX_OUTPUT_BYTES} bytes of output)"
        process.wait(max(0.0, deadline - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        return bytes(output), stopped
    return bytes(output), f"(ended with {process.returncode})" if process.returncode else ""


def _read_while_writing(
    process: "subprocess.Popen[bytes]", program: bytes, deadline: float
) -> Iterator[bytes]:
    """Chunks of the output until its pipe is closed; `TimeoutError` after the deadline."""
    assert process.stdin is not None
    assert process.stdout is not None
    unwritten = memoryview(program)
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            ready = [key.fileobj for key, _ in selector.select(min(remaining, MAX_WAIT_SECONDS))]
            if process.stdin in ready:
                unwritten = unwritten[_write(process.stdin, unwritten) :]
                if not unwritten:
                    selector.unregister(process.stdin)
                    process.stdin.close()
            if process.stdout in ready:
                chunk = os.read(process.stdout.fileno(), CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk


def _write(stream: IO[bytes], data: memoryview) -> int:
    """The number of bytes that were written; all, if the other end is closed."""
    try:
        return os.write(stream.fileno(), data[:CHUNK_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kills the launcher and the first process of the sandbox's PID namespace, if it still runs.

    The kernel then kills every process of the namespace. All of them have ended when the output
    pipe is closed, of which each has a copy.
    """
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    deadline = time.monotonic() + END_TIMEOUT
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            if not os.read(process.stdout.fileno(), CHUNK_BYTES):
                return
    raise RuntimeError(f"a process of the sandbox still runs {END_TIMEOUT} s after it was killed")
