"""Measure the history of a run with many tasks: memory, time per step, and time to save.

    python benchmarks/history.py [TASKS]

The history first gets `VISITS_PER_TASK` groups of `GROUP_SIZE` rollouts for every task. Then steps
of `PROMPTS_PER_STEP` tasks are timed: copy the history for the sampler, look up every task, append
the groups. The memory excludes the keys of the tasks, which exist before.
"""

import random
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.curricula import BetaCounts
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage import checkpoint

STATISTICS = (BetaCounts(0.9),)  # two numbers per task
VISITS_PER_TASK, GROUP_SIZE, PROMPTS_PER_STEP, STEPS = 2, 8, 512, 50


def resident_mb() -> float:
    """Return the anonymous resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1e3


def scored_group(task: Task) -> Group:
    """Return a group of rollouts with random rewards."""
    return Group(task, tuple(Rollout(reward=random.random()) for _ in range(GROUP_SIZE)))


def time_step(history: History, number: int, groups: list[Group]) -> float:
    """Return the CPU milliseconds that a step spends on the history."""
    start = time.process_time()
    history_copy = history.copy()
    for group in groups:
        history_copy.statistics_of_task(group.task)
    history.append_groups(number, groups)
    return (time.process_time() - start) * 1e3


def time_save_and_load(history: History) -> tuple[float, float, float]:
    """Return the seconds to save, the seconds to load, and the MB on disk."""
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = checkpoint.save(Path(folder), 1, {"history": history.tensors()}, history.to_data())
        saved = time.perf_counter()
        size = (path / "history.safetensors").stat().st_size / 1e6
        loaded = checkpoint.load_newest(Path(folder))
        History.from_data(loaded.data, loaded.tensors["history"], STATISTICS)
        return saved - start, time.perf_counter() - saved, size


def main(task_count: int) -> None:
    """Measure a history of `task_count` tasks."""
    tasks = [Task(f"{number:032x}", "") for number in range(task_count)]
    baseline = resident_mb()
    history = History(statistics_by_task=StatisticStore(STATISTICS))
    for number in range(VISITS_PER_TASK):
        history.append_groups(number, map(scored_group, tasks))
        memory = resident_mb() - baseline
        print(f"{task_count:,} tasks, {number + 1} groups each: {memory:.0f} MB")
    times = []
    prompts = min(PROMPTS_PER_STEP, task_count)
    for step in range(STEPS):
        groups = list(map(scored_group, random.sample(tasks, prompts)))
        times.append(time_step(history, VISITS_PER_TASK + step, groups))
    print(f"step of {prompts} tasks: {median(times):.1f} ms, at most {max(times):.1f} ms")
    start = time.process_time()
    for _ in range(1000):
        history.copy()
    print(f"copy: {time.process_time() - start:.3f} ms")
    save_seconds, load_seconds, size = time_save_and_load(history)
    print(f"save: {save_seconds:.1f} s, load: {load_seconds:.1f} s, {size:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
