"""Runs that are repeated in other processes, beside busy processes, and compared."""

import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.training_processes import TrainingProcess

BUSY = "import time\nend = time.monotonic() + 1200\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_processes(count: int) -> Generator[None]:
    """Processes that compete for the cores, so that threads are held back at random."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def training_process(root: Path, hash_seed: int) -> Generator[TrainingProcess]:
    # threads that wait sleep: spinning threads would slow each other down on a busy machine
    variables = {"PYTHONHASHSEED": str(hash_seed), "OMP_WAIT_POLICY": "passive"}
    process = TrainingProcess(root, variables)
    try:
        yield process
    finally:
        process.close()


def outcomes(
    root: Path, hash_seed: int, threads: int, recipes: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The outcome of one run of each recipe, trained in processes with a hash seed."""
    folder = root / str(hash_seed)
    with training_process(root, hash_seed) as process:
        for name in recipes:
            result = process("train", folder / name, recipe=name, threads=threads)
            assert result.succeeded, (name, result)
    return {name: outcome(folder / name) for name in recipes}


def assert_equal_runs(
    root: Path, threads: int, recipes: Sequence[str], repetitions: int, load: int
) -> None:
    """Runs with different hash seeds, beside `load` busy processes, have the same bits."""
    with busy_processes(load):
        first = outcomes(root, 1, threads, recipes)
        for hash_seed in range(3, repetitions + 2):  # "flow" depended on whether it is 1 or 3
            other = outcomes(root, hash_seed, threads, recipes)
            for name in recipes:
                assert differences(first[name], other[name]) == [], name
