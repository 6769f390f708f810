"""What a run's history of many tasks takes: memory, time at each step, and time to be saved.

    python benchmarks/history.py [TASKS]

Every task comes `TIMES` times with `GROUP` rollouts. Then steps of `PROMPTS` tasks are timed: a
copy for the sampler, the past of each task, and their groups appended. Keys of tasks are made
before: they are the tasks' own.
"""

import random
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.storage import checkpoint

TIMES, GROUP, PROMPTS, STEPS = 2, 8, 512, 50


def resident() -> float:
    """Memory of this process that is its own, in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1e3


def attempted(task: Task) -> Group:
    """A group of it, judged."""
    return Group(task, tuple(Rollout(reward=random.random()) for _ in range(GROUP)))


def step(history: History, number: int, groups: list[Group]) -> float:
    """Milliseconds of processor time that a step takes of it."""
    began = time.process_time()
    known = history.copy()
    for group in groups:
        known.of(group.task)
    history.record(number, groups)
    return (time.process_time() - began) * 1e3


def saved(history: History) -> tuple[float, float, float]:
    """Seconds to save it and to have it again, and the megabytes it takes on the disk."""
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        path = checkpoint.save(Path(folder), 1, {"history": history.tensors()}, history.to_data())
        between = time.perf_counter()
        size = (path / "history.safetensors").stat().st_size / 1e6
        found = checkpoint.load(Path(folder))
        History.from_data(found.data, found.tensors["history"])
        return between - began, time.perf_counter() - between, size


def main(count: int) -> None:
    """Measure so many tasks."""
    tasks = [Task(f"{number:032x}", "") for number in range(count)]
    before, history = resident(), History()
    for number in range(TIMES):
        history.record(number, map(attempted, tasks))
        print(f"{count:,} tasks, come {number + 1} times: {resident() - before:.0f} MB")
    some = [list(map(attempted, random.sample(tasks, PROMPTS))) for _ in range(STEPS)]
    times = [step(history, TIMES + i, groups) for i, groups in enumerate(some)]
    print(f"a step of {PROMPTS} tasks: {median(times):.1f} ms, at most {max(times):.1f} ms")
    began = time.process_time()
    for _ in range(1000):
        history.copy()
    print(f"a copy: {time.process_time() - began:.3f} ms")
    print("saved in {:.1f} s, had again in {:.1f} s, {:.0f} MB".format(*saved(history)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
