"""What a run's history of many tasks takes: memory, time at each step, and time to be saved.

    python benchmarks/history.py [TASKS]

Every task comes `TIMES` times with `GROUP_SIZE` rollouts. Then steps of `PROMPTS_PER_STEP` tasks
are timed: a copy for the sampler, the history of each task, and their groups appended. Keys of
tasks are made before, because they belong to the tasks.
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

VISITS_PER_TASK, GROUP_SIZE, PROMPTS_PER_STEP, STEPS = 2, 8, 512, 50


def resident_mb() -> float:
    """Memory of this process that is its own, in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1e3


def scored_group(task: Task) -> Group:
    """A group of it, judged."""
    return Group(task, tuple(Rollout(reward=random.random()) for _ in range(GROUP_SIZE)))


def time_step(history: History, number: int, groups: list[Group]) -> float:
    """Milliseconds of processor time that a step takes of it."""
    began = time.process_time()
    known = history.copy()
    for group in groups:
        known.task_history(group.task)
    history.append_groups(number, groups)
    return (time.process_time() - began) * 1e3


def time_save_and_load(history: History) -> tuple[float, float, float]:
    """Seconds to save it and to have it again, and the megabytes it takes on the disk."""
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        path = checkpoint.save(Path(folder), 1, {"history": history.tensors()}, history.to_data())
        between = time.perf_counter()
        size = (path / "history.safetensors").stat().st_size / 1e6
        found = checkpoint.load(Path(folder))
        History.from_data(found.data, found.tensors["history"])
        return between - began, time.perf_counter() - between, size


def main(task_count: int) -> None:
    """Measure so many tasks."""
    tasks = [Task(f"{number:032x}", "") for number in range(task_count)]
    before, history = resident_mb(), History()
    for number in range(VISITS_PER_TASK):
        history.append_groups(number, map(scored_group, tasks))
        print(f"{task_count:,} tasks, come {number + 1} times: {resident_mb() - before:.0f} MB")
    some = [list(map(scored_group, random.sample(tasks, PROMPTS_PER_STEP))) for _ in range(STEPS)]
    times = [time_step(history, VISITS_PER_TASK + i, groups) for i, groups in enumerate(some)]
    print(
        f"a step of {PROMPTS_PER_STEP} tasks: {median(times):.1f} ms, at most {max(times):.1f} ms"
    )
    began = time.process_time()
    for _ in range(1000):
        history.copy()
    print(f"a copy: {time.process_time() - began:.3f} ms")
    print(
        "saved in {:.1f} s, had again in {:.1f} s, {:.0f} MB".format(*time_save_and_load(history))
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
