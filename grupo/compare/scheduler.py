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

from grupo.compare.experiment import Cell
from grupo.compare.run_status import LOG, TO_DO, WAITING, Outcome, crashed, look
from grupo.core.errors import Refused
from grupo.training.run_dir import Run

PATIENCE = 10.0  # seconds in which a stopped cell may tidy up
EVERY = 0.2  # seconds between looks at the processes
PROGRAM = ("-m", "grupo.compare.worker")


@dataclass(frozen=True)
class Machine:
    """So many cells at a time, each with so many threads; each on a GPU of its own, if any."""

    workers: int
    threads: int = 1
    gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpus and self.workers > len(self.gpus):
            allowed = f"up to {len(self.gpus)}, each on a GPU of its own"
            raise Refused(f"workers: {self.workers}. Allowed: {allowed}.")

    @classmethod
    def here(cls, workers: int = 0, threads: int = 1) -> "Machine":
        """The whole machine unless fewer `workers` will do: its GPUs, or else its cores."""
        gpus = visible()
        cores = max(1, len(os.sched_getaffinity(0)) // max(1, threads))
        return cls(workers or len(gpus) or cores, threads, gpus)

    def environment(self, place: int) -> dict[str, str]:
        """What a process is told of its share of the machine."""
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        gpu = {"CUDA_VISIBLE_DEVICES": self.gpus[place]} if self.gpus else {}
        return {**dict.fromkeys(names, str(self.threads)), **gpu}


def visible() -> tuple[str, ...]:
    """The GPUs that may be used, as CUDA calls them: those that the environment names, or all."""
    count, named = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = named.split(",") if named else map(str, range(count))
    return tuple(name.strip() for name in names)[:count]


class Audience(Protocol):
    """Whoever looks on while cells are trained."""

    def started(self, cell: Cell) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...

    def looked(self) -> None: ...


class Nobody:
    """Looks away."""

    def started(self, cell: Cell) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        pass

    def looked(self) -> None:
        pass


def train_all(cells: Sequence[Cell], machine: Machine, audience: Audience = Nobody()) -> None:
    """Train every cell that waits or was cut off; one that crashes leaves the others alone."""
    waiting, running = deque(cells), dict[int, tuple[Cell, subprocess.Popen[bytes]]]()
    with _stopping(running):
        while waiting or running:
            for place in range(machine.workers):
                if waiting and place not in running:
                    started = _start(waiting.popleft(), machine.environment(place), audience)
                    running.update({place: found} if (found := started) else {})
            time.sleep(EVERY)
            for place in [p for p, (_, process) in running.items() if process.poll() is not None]:
                _end(*running.pop(place), audience)
            audience.looked()


def _start(
    cell: Cell, environment: Mapping[str, str], audience: Audience
) -> tuple[Cell, subprocess.Popen[bytes]] | None:
    """The process of a cell, if it is still to be done."""
    status = look(cell).status
    if status not in TO_DO:
        return None
    if status == WAITING:
        with Run.create(cell.folder, cell.recipe)[1]:
            pass  # the right to write in it is the process's
    process = _process(cell, environment)
    audience.started(cell)
    return cell, process


def _process(cell: Cell, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (cell.folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *PROGRAM, str(cell.folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **paths, **environment},
            start_new_session=True,  # Ctrl-C reaches the queue alone, which then stops its cells
        )


def _end(cell: Cell, process: subprocess.Popen[bytes], audience: Audience) -> None:
    _sweep(process)
    if process.returncode:
        crashed(cell.folder, process.returncode)
    audience.ended(look(cell))


@contextmanager
def _stopping(running: Mapping[int, tuple[Cell, subprocess.Popen[bytes]]]) -> Iterator[None]:
    """Whatever ends the queue ends its processes; what they saved is whole."""
    try:
        yield
    finally:
        processes = [process for _, process in running.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            _sweep(process)


def _sweep(process: subprocess.Popen[bytes]) -> None:
    """End whatever a process started and left, its judges say, which may hold its GPU."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with process:
        pass  # its input is closed
