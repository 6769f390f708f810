"""`grupo serve`: vLLM servers as the engine needs them, started again when one of them ends."""

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

from grupo.inference.served_process import ServedProcess
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import (
    MAX_LORA_RANKS,
    copy_worker,
    server_command,
    server_environment,
)
from grupo.util.console import print_error
from grupo.util.errors import ConfigError

LAST_PORT = 65535
POLL_INTERVAL = 0.1  # seconds
ANSWER_SECONDS = 120  # in which an interpreter says whether it has vLLM
NO_LIMIT = 1 << 30  # of the context: that of the model
LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
        lora_rank: largest rank of adapters that are sent alone; 0: adapters are merged.
    """

    model: str
    python: str = sys.executable
    port: int = 8000
    bind: str = "127.0.0.1"
    tensor_parallel: int = 1
    data_parallel: int = 1
    dtype: str = "bfloat16"
    more: tuple[str, ...] = ()
    lora_rank: int = 0

    def __post_init__(self) -> None:
        for name in ("tensor_parallel", "data_parallel"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)}. Allowed: 1 or more.")
        last = LAST_PORT - self.data_parallel + 1
        if not 1 <= self.port <= last:
            raise ConfigError(f"port: {self.port}. Allowed: 1 to {last}.")
        if not 0 <= self.lora_rank <= MAX_LORA_RANKS[-1]:
            raise ConfigError(f"lora_rank: {self.lora_rank}. Allowed: 0 to {MAX_LORA_RANKS[-1]}.")
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
            dtype=self.dtype,  # pyrefly: ignore[bad-argument-type]  # Vllm checks it
            devices=self._devices(number),
            gpu_memory_utilization=0.9,
            server_options=("--tensor-parallel-size", str(self.tensor_parallel), *self.more),
        )
        command = server_command(
            spec, self.model, NO_LIMIT, host=self.bind, lora_rank=self.lora_rank
        )
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
        done = subprocess.run(
            [python, "-c", script], capture_output=True, check=False, timeout=ANSWER_SECONDS
        )
    except OSError as error:
        problem = error.strerror
    except subprocess.TimeoutExpired:
        problem = f"it gave no answer in {ANSWER_SECONDS} s"
    else:
        problem = "it has no vllm" if done.returncode else ""
    if problem:
        raise ConfigError(
            f"python: {python!r}: {problem}. Allowed: an interpreter with vLLM; docs/vllm.md says"
            " how to install one. --openai serves without vLLM."
        )


def run_servers(options: ServeOptions) -> NoReturn:
    """Run the servers until Ctrl-C or SIGTERM; one that ends is started again.

    Raises:
        ServerEndedError: a server has ended too often, or before it answered; all are ended.
    """
    folder = Path(tempfile.mkdtemp(prefix="grupo-serve-"))
    copy_worker(folder)
    signal.signal(signal.SIGTERM, _interrupt)
    servers: list[ServedProcess] = []
    try:
        for number, (environment, command) in enumerate(options.commands(str(folder))):
            address = options.bind, options.port + number
            servers.append(ServedProcess(address, environment, command, folder))
        while True:
            for server in servers:
                if message := server.keep_running():
                    print_error(message)
            time.sleep(POLL_INTERVAL)
    finally:
        for server in servers:
            server.end()
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
