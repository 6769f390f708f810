"""Cells trained side by side, each in a process of its own, on cores or on GPUs."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import torch

from grupo.compare.experiment import RunSpec
from grupo.compare.run_status import (
    LOG_FILE,
    UNFINISHED,
    WAITING,
    RunStatus,
    record_crash,
    status_of,
)
from grupo.core.errors import ConfigError
from grupo.training.run_dir import RunFolder

STOP_GRACE_SECONDS = 10.0  # seconds in which a stopped cell may tidy up
POLL_SECONDS = 0.2  # seconds between looks at the processes
WORKER_ARGUMENTS = ("-m", "grupo.compare.worker")


@dataclass(frozen=True)
class Resources:
    """So many cells at a time, each with so many threads; each on a GPU of its own, if any."""

    workers: int
    threads: int = 1
    gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpus and self.workers > len(self.gpus):
            allowed = f"up to {len(self.gpus)}, each on a GPU of its own"
            raise ConfigError(f"workers: {self.workers}. Allowed: {allowed}.")

    @classmethod
    def detect(cls, workers: int = 0, threads: int = 1) -> "Resources":
        """The whole machine unless fewer `workers` will do: its GPUs, or else its cores."""
        gpus = visible_gpus()
        cores = max(1, len(os.sched_getaffinity(0)) // max(1, threads))
        return cls(workers or len(gpus) or cores, threads, gpus)

    def environment(self, slot: int) -> dict[str, str]:
        """What a process is told of its share of the machine."""
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        gpu = {"CUDA_VISIBLE_DEVICES": self.gpus[slot]} if self.gpus else {}
        return {**dict.fromkeys(names, str(self.threads)), **gpu}


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that may be used, as CUDA calls them: those that the environment names, or all."""
    count, named = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = named.split(",") if named else map(str, range(count))
    return tuple(name.strip() for name in names)[:count]


class QueueCallback(Protocol):
    """Whoever looks on while cells are trained."""

    def on_run_start(self, run_spec: RunSpec) -> None: ...

    def on_run_end(self, run_status: RunStatus) -> None: ...

    def on_poll(self) -> None: ...


class NullQueueCallback:
    """Looks away."""

    def on_run_start(self, run_spec: RunSpec) -> None:
        pass

    def on_run_end(self, run_status: RunStatus) -> None:
        pass

    def on_poll(self) -> None:
        pass


def train_all(
    run_specs: Sequence[RunSpec],
    resources: Resources,
    queue_callback: QueueCallback = NullQueueCallback(),
) -> None:
    """Train every cell that waits or was cut off; one that crashes leaves the others alone."""
    waiting, running = deque(run_specs), dict[int, tuple[RunSpec, subprocess.Popen[bytes]]]()
    with _terminate_on_exit(running):
        while waiting or running:
            for place in range(resources.workers):
                if waiting and place not in running:
                    started = _start_run(
                        waiting.popleft(), resources.environment(place), queue_callback
                    )
                    running.update({place: found} if (found := started) else {})
            time.sleep(POLL_SECONDS)
            for place in [p for p, (_, process) in running.items() if process.poll() is not None]:
                _end_run(*running.pop(place), queue_callback)
            queue_callback.on_poll()


def _start_run(
    run_spec: RunSpec, environment: Mapping[str, str], queue_callback: QueueCallback
) -> tuple[RunSpec, subprocess.Popen[bytes]] | None:
    """The process of a cell, if it is still to be done."""
    status = status_of(run_spec).status
    if status not in UNFINISHED:
        return None
    if status == WAITING:
        with RunFolder.create(run_spec.folder, run_spec.recipe)[1]:
            pass  # the right to write in it is the process's
    process = _spawn_worker(run_spec, environment)
    queue_callback.on_run_start(run_spec)
    return run_spec, process


def _spawn_worker(run_spec: RunSpec, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (run_spec.folder / LOG_FILE).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *WORKER_ARGUMENTS, str(run_spec.folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **paths, **environment},
            start_new_session=True,  # Ctrl-C reaches the queue alone, which then stops its cells
        )


def _end_run(
    run_spec: RunSpec, process: subprocess.Popen[bytes], queue_callback: QueueCallback
) -> None:
    _kill_process_group(process)
    if process.returncode:
        record_crash(run_spec.folder, process.returncode)
    queue_callback.on_run_end(status_of(run_spec))


@contextmanager
def _terminate_on_exit(
    running: Mapping[int, tuple[RunSpec, subprocess.Popen[bytes]]],
) -> Iterator[None]:
    """Whatever ends the queue ends its processes; what they saved is whole."""
    try:
        yield
    finally:
        processes = [process for _, process in running.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_GRACE_SECONDS)
            _kill_process_group(process)


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever a process started and left, its judges say, which may hold its GPU."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with process:
        pass  # its input is closed
