"""Trains runs in parallel, each in its own process, on CPU cores or on one GPU each."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
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
from grupo.config.tool_formats import with_tool_formats
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError

STOP_GRACE_SECONDS = 10.0  # between SIGTERM and SIGKILL
POLL_SECONDS = 0.2  # between two checks of the processes
WORKER_ARGUMENTS = ("-m", "grupo.compare.worker")


@dataclass(frozen=True)
class Resources:
    """The resources of a comparison.

    Args:
        workers: the number of parallel runs.
        threads: CPU threads of each run.
        gpus: the CUDA devices, one per run; empty: runs use the CPU.

    Raises:
        ConfigError: more workers than GPUs.
    """

    workers: int
    threads: int = 1
    gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpus and self.workers > len(self.gpus):
            allowed = f"up to {len(self.gpus)}, each on a GPU of its own"
            raise ConfigError(f"workers: {self.workers}. Allowed: {allowed}.")

    @classmethod
    def detect(cls, workers: int = 0, threads: int = 1) -> "Resources":
        """All visible GPUs, or else all cores; `workers` 0: as many runs as fit."""
        gpus = visible_gpus()
        cores = max(1, len(os.sched_getaffinity(0)) // max(1, threads))
        return cls(workers or len(gpus) or cores, threads, gpus)

    def environment(self, slot: int) -> dict[str, str]:
        """The environment variables of the process in a slot."""
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        gpu = {"CUDA_VISIBLE_DEVICES": self.gpus[slot]} if self.gpus else {}
        return {**dict.fromkeys(names, str(self.threads)), **gpu}


def visible_gpus() -> tuple[str, ...]:
    """The CUDA devices in CUDA_VISIBLE_DEVICES, or all."""
    count = torch.cuda.device_count()
    selected = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = selected.split(",") if selected else map(str, range(count))
    return tuple(name.strip() for name in names)[:count]


class QueueCallback(Protocol):
    """Is notified while runs are trained."""

    def on_run_start(self, run_spec: RunSpec) -> None: ...

    def on_run_end(self, run_status: RunStatus) -> None: ...

    def on_run_skip(self, run_spec: RunSpec) -> None: ...

    def on_poll(self) -> None: ...


class NullQueueCallback:
    """Does nothing."""

    def on_run_start(self, run_spec: RunSpec) -> None:
        pass

    def on_run_end(self, run_status: RunStatus) -> None:
        pass

    def on_run_skip(self, run_spec: RunSpec) -> None:
        pass

    def on_poll(self) -> None:
        pass


class RunSelection(Protocol):
    """Decides, when a run could start, whether it is needed."""

    def is_needed(self, run_spec: RunSpec) -> bool: ...

    def on_run_end(self, run_status: RunStatus) -> None: ...


class AllRuns:
    """Every run is needed."""

    def is_needed(self, run_spec: RunSpec) -> bool:
        return True

    def on_run_end(self, run_status: RunStatus) -> None:
        pass


def train_all(
    run_specs: Sequence[RunSpec],
    resources: Resources,
    queue_callback: QueueCallback = NullQueueCallback(),
    selection: RunSelection = AllRuns(),
) -> None:
    """Train the waiting and interrupted runs that are needed; a crash does not affect the others.

    Args:
        run_specs: the runs.
        resources: how many run in parallel, and on which devices.
        queue_callback: is notified of starts, ends, omitted runs and every poll.
        selection: which runs are needed, in view of those that have ended.
    """
    waiting = deque(run_specs)
    running = dict[int, tuple[RunSpec, subprocess.Popen[bytes]]]()
    with _terminate_on_exit(running):
        while waiting or running:
            for slot in range(resources.workers):
                _skip_unneeded(waiting, selection, queue_callback)
                if waiting and slot not in running:
                    environment = resources.environment(slot)
                    if started := _start_run(waiting.popleft(), environment, queue_callback):
                        running[slot] = started
            time.sleep(POLL_SECONDS)
            for slot in [s for s, (_, process) in running.items() if process.poll() is not None]:
                run_status = _end_run(*running.pop(slot))
                selection.on_run_end(run_status)
                queue_callback.on_run_end(run_status)
            queue_callback.on_poll()


def _skip_unneeded(
    waiting: deque[RunSpec], selection: RunSelection, queue_callback: QueueCallback
) -> None:
    """Remove runs that are no longer needed from the front of the queue."""
    while waiting and not selection.is_needed(waiting[0]):
        queue_callback.on_run_skip(waiting.popleft())


def _start_run(
    run_spec: RunSpec, environment: Mapping[str, str], queue_callback: QueueCallback
) -> tuple[RunSpec, subprocess.Popen[bytes]] | None:
    """Start the process of a run; None if it needs no training."""
    status = status_of(run_spec).status
    if status not in UNFINISHED:
        return None
    if status == WAITING:
        create_folder(run_spec)
    process = _spawn_worker(run_spec, environment)
    queue_callback.on_run_start(run_spec)
    return run_spec, process


def create_folder(run_spec: RunSpec) -> None:
    """Create the folder of a run, whose recipe names the format of its tool calls."""
    with RunFolder.create(run_spec.folder, with_tool_formats(run_spec.recipe))[1]:
        pass  # release the lock: the process takes it


def _spawn_worker(run_spec: RunSpec, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (run_spec.folder / LOG_FILE).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *WORKER_ARGUMENTS, str(run_spec.folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **paths, **environment},
            start_new_session=True,  # Ctrl-C reaches only this process, which stops its runs
        )


def _end_run(run_spec: RunSpec, process: subprocess.Popen[bytes]) -> RunStatus:
    _kill_process_group(process)
    if process.returncode:
        record_crash(run_spec.folder, process.returncode)
    return status_of(run_spec)


@contextmanager
def _terminate_on_exit(
    running: Mapping[int, tuple[RunSpec, subprocess.Popen[bytes]]],
) -> Generator[None]:
    """Terminate all processes when the block ends; their checkpoints are complete."""
    try:
        yield
    finally:
        processes = [process for _, process in running.values()]
        for process in processes:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # a stopped process cannot end
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_GRACE_SECONDS)
            _kill_process_group(process)


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the children that a process left, such as reward workers, which may hold its GPU."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with process:
        pass  # closes its standard input
