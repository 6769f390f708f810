"""`grupo serve`: vLLM servers as the engine needs them, run until one of them or the user ends."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from grupo.core.errors import ConfigError
from grupo.core.exit_codes import CommandError
from grupo.inference import vllm_guard, vllm_worker
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import server_command, server_environment

LAST_PORT = 65535
SHUTDOWN_GRACE = 10.0  # seconds between SIGTERM and SIGKILL
POLL_INTERVAL = 0.1  # seconds
NO_LIMIT = 1 << 30  # of the context: that of the model
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ServerEndedError(CommandError):
    """A server ended by itself."""


@dataclass(frozen=True)
class ServeOptions:
    """One or several servers of one model on this machine.

    vLLM's own data parallelism is not used: such a server passes on the results of one of its
    engines only, so that the weights of the others could not be checked. Instead there is a server
    per copy of the model, on ports that follow one another.

    Args:
        model: folder or hub name.
        python: interpreter of an environment with vLLM.
        port: of the first server.
        bind: address that the servers listen on.
        tensor_parallel: GPUs of each server.
        data_parallel: servers.
        dtype: in which vLLM computes.
        more: further options of vLLM.
    """

    model: str
    python: str = sys.executable
    port: int = 8000
    bind: str = "127.0.0.1"
    tensor_parallel: int = 1
    data_parallel: int = 1
    dtype: str = "bfloat16"
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tensor_parallel", "data_parallel"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)}. Allowed: 1 or more.")
        last = LAST_PORT - self.data_parallel + 1
        if not 1 <= self.port <= last:
            raise ConfigError(f"port: {self.port}. Allowed: 1 to {last}.")
        if not self.bind:
            raise ConfigError("bind: ''. Allowed: an address of this machine.")

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the servers."""
        host = f"[{self.bind}]" if ":" in self.bind else self.bind
        return tuple(f"http://{host}:{self.port + i}" for i in range(self.data_parallel))

    @property
    def warning(self) -> str:
        """A line about the exposure of the servers; "" if only this machine reaches them."""
        if self.bind in LOOPBACK:
            return ""
        return (
            f"Anybody who reaches {self.bind} on port {self.port} can run methods of the servers'"
            " workers: let only the machines of the run reach it."
        )

    def commands(self, folder: str) -> list[tuple[dict[str, str], tuple[str, ...]]]:
        """Environment variables and command of each server.

        Args:
            folder: contains a copy of the worker extension and nothing else.
        """
        return [self._command(i, folder) for i in range(self.data_parallel)]

    def _command(self, number: int, folder: str) -> tuple[dict[str, str], tuple[str, ...]]:
        spec = Vllm(
            python=self.python,
            dtype=self.dtype,  # pyright: ignore[reportArgumentType]  # Vllm checks it
            devices=self._devices(number),
            gpu_memory_utilization=0.9,
            server_options=("--tensor-parallel-size", str(self.tensor_parallel), *self.more),
        )
        command = server_command(spec, self.model, NO_LIMIT, host=self.bind)
        port = str(self.port + number)
        environment = {**server_environment(spec), "PYTHONPATH": folder}
        return environment, tuple(part.replace("{port}", port) for part in command)

    def _devices(self, number: int) -> str:
        """The GPUs of a server; "" for a single one, which takes those of this process."""
        if self.data_parallel == 1:
            return ""
        visible = [n for n in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if n]
        needed = self.tensor_parallel * self.data_parallel
        if visible and len(visible) < needed:
            raise ConfigError(
                f"data_parallel: {self.data_parallel}, which needs {needed} GPUs. Allowed: as many"
                f" as CUDA_VISIBLE_DEVICES names, {len(visible)}, by tensor_parallel."
            )
        first = number * self.tensor_parallel
        return ",".join((visible or list(map(str, range(needed))))[first:][: self.tensor_parallel])


def command_line(environment: Mapping[str, str], command: Sequence[str]) -> str:
    """A command as it is typed into a shell."""
    variables = (f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return " ".join((*variables, shlex.join(command)))


def check_interpreter(python: str) -> None:
    """Raise `ConfigError` if an interpreter is missing or has no vLLM."""
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, check=False)
    except OSError as error:
        problem = error.strerror
    else:
        problem = "it has no vllm" if done.returncode else ""
    if problem:
        raise ConfigError(
            f"python: {python!r}: {problem}. Allowed: an interpreter with vLLM; docs/vllm.md says"
            " how to install one."
        )


def run_servers(options: ServeOptions) -> NoReturn:
    """Run the servers until one of them ends, which ends all, or until Ctrl-C or SIGTERM.

    Raises:
        ServerEndedError: a server ended by itself.
    """
    folder = Path(tempfile.mkdtemp(prefix="grupo-serve-"))
    shutil.copy(vllm_worker.__file__, folder)
    signal.signal(signal.SIGTERM, _interrupt)
    guards: list[subprocess.Popen[bytes]] = []
    try:
        for environment, command in options.commands(str(folder)):
            guards.append(_start(environment, command, folder))
        while all(guard.poll() is None for guard in guards):
            time.sleep(POLL_INTERVAL)
        ended = [guard.poll() is not None for guard in guards].index(True)
        raise ServerEndedError(f"The server at {options.urls[ended]} has ended.")
    finally:
        for guard in guards:
            guard.communicate(vllm_guard.SHUTDOWN_MESSAGE)
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    environment: Mapping[str, str], command: Sequence[str], folder: Path
) -> "subprocess.Popen[bytes]":
    """Start a server below a guard, which ends it when this process ends."""
    guard = [sys.executable, "-P", vllm_guard.__file__, str(folder), str(SHUTDOWN_GRACE)]
    variables = {**os.environ, **environment}
    return subprocess.Popen(
        [*guard, *command], env=variables, stdin=subprocess.PIPE, start_new_session=True
    )


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
