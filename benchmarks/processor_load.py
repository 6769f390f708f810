"""What processors did during each step of a run: its own work, that of others, and their speed.

On a virtual machine the speed changes: the host runs programs of others on the other half of a
core, and the same work then takes up to twice as long, for some seconds, on one processor and not
on the other.
"""

import json
import os
import time
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from grupo.training.callbacks import NullCallback

PRODUCTS = 30  # of matrices, like those of a decoding step
ITERATIONS = 3000  # of a loop in Python
LOAD = "load.jsonl"  # the end of the name of the file of a run's steps
Step = dict[str, float]  # its metrics, and what processors did meanwhile
TICK = os.sysconf("SC_CLK_TCK")


def use_processors(processors: Collection[int]) -> None:
    """Let all threads of this process run on these processors only."""
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), processors)


def probe_seconds() -> list[float]:
    """Seconds of this thread for the same short work on each processor that it may use."""
    allowed = sorted(os.sched_getaffinity(0))
    rows, weight = torch.ones(16, 256), torch.ones(256, 688)
    seconds = []
    for processor in allowed:
        os.sched_setaffinity(0, {processor})
        _work(rows, weight, PRODUCTS // 3)  # fills the caches
        begin = time.thread_time()
        _work(rows, weight, PRODUCTS)
        seconds.append(time.thread_time() - begin)
    os.sched_setaffinity(0, allowed)
    return seconds


def _work(rows: torch.Tensor, weight: torch.Tensor, products: int) -> None:
    for _ in range(products):
        torch.mm(rows, weight)
    counts: dict[int, int] = {}
    for i in range(products * ITERATIONS // PRODUCTS):
        counts[i % 97] = counts.get(i % 97, 0) + i


class LoadRecorder(NullCallback):
    """Records, for each step, its seconds, its work, that of other programs, and probes of speed.

    The work of this thread, which updates, is recorded by itself.

    Args:
        file: A line for each step.
        ranks: Number of ranks, which have the same parent as this process.
    """

    def __init__(self, file: Path, ranks: int) -> None:
        self.file = file
        self.pids = [os.getpid()] if ranks == 1 else _children(os.getppid())
        self.probes = probe_seconds()
        self.before = self._measure()

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a line for the step."""
        now = self._measure()
        seconds, all_programs, own, thread = (b - a for a, b in zip(self.before, now, strict=True))
        probes, self.probes = self.probes, probe_seconds()
        processors = len(probes)
        record = {
            "step": step,
            "seconds": seconds,
            "work": own,
            "thread": thread,
            "processors": processors,
            "others": max(0.0, all_programs - own) / (processors * seconds),
            "probes": [(a + b) / 2 for a, b in zip(probes, self.probes, strict=True)],
        }
        with self.file.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.before = self._measure()

    def _measure(self) -> tuple[float, float, float, float]:
        """Seconds now, of the allowed processors, of these for the ranks and for this thread."""
        names = {f"cpu{processor}" for processor in os.sched_getaffinity(0)}
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        used = sum(sum(map(int, line[1:4])) for line in lines if line[0] in names)
        own = sum(sum(map(int, _stat(pid)[11:13])) for pid in self.pids)
        return time.perf_counter(), used / TICK, own / TICK, time.thread_time()


def _children(parent: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if int(_stat(pid)[1]) == parent]


def _stat(pid: int) -> list[str]:
    """The fields of the process's state after its name; those of a process that has ended are 0."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 13


@cache
def reference_probe(folder: Path) -> float:
    """The median of the seconds of a probe."""
    lines = [line for file in folder.glob(f"repeat-*/**/*.{LOAD}") for line in file.open()]
    return median(probe for line in lines for probe in json.loads(line)["probes"])


def at_speed(step: dict[str, Any], reference: float) -> Step:
    """The step as it would have been on processors that need `reference` seconds for a probe."""
    probes = step.pop("probes")
    speed = fmean(reference / probe for probe in probes)
    timed = {name for name in step if name.startswith("time/")} | {"seconds", "work", "thread"}
    scaled = {name: speed * step[name] for name in timed}
    return step | scaled | {"imbalance": max(probes) / min(probes) - 1}
