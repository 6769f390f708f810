"""Commands of a user, timed: each stage of the first hour has a line in a table."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class StageError(Exception):
    """A stage did not give the result that it should."""


@dataclass(frozen=True)
class Times:
    """Durations of a stage.

    Args:
        wall: Seconds that passed.
        processor: Seconds of all its processes on all cores.
    """

    wall: float
    processor: float


@dataclass
class User:
    """The person at the keyboard: a folder, and commands that run in it.

    Args:
        folder: The folder in which the person works.
        python: Python of the environment in which grupo is installed.
    """

    folder: Path
    python: Path
    output: str = field(default="", init=False)

    def write(self, name: str, text: str) -> None:
        """Save a file in the folder."""
        (self.folder / name).write_text(text)

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """Run a command; returns what it printed. Raises `StageError` if it fails."""
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
        result = subprocess.run(
            list(map(str, command)),
            cwd=folder or self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.output = result.stdout
        if result.returncode:
            line = " ".join(map(str, command))
            raise StageError(f"`{line}` ended with {result.returncode}:\n{result.stdout[-3000:]}")
        return result.stdout

    def grupo(self, *arguments: str) -> str:
        """Run a command of grupo."""
        return self.run(self.python, "-m", "grupo", *arguments)

    def script(self, name: str, text: str) -> str:
        """Write a Python file and run it."""
        self.write(name, text)
        return self.run(self.python, name)

    def expect(self, *texts: str) -> None:
        """Raise `StageError` if the last command did not print each of the texts."""
        for text in texts:
            if text not in self.output:
                raise StageError(f"{text!r} is not in the output:\n{self.output[-3000:]}")

    def expect_files(self, *names: str) -> None:
        """Raise `StageError` if a file is missing or empty."""
        for name in names:
            path = self.folder / name
            if not path.is_file() or not path.stat().st_size:
                raise StageError(f"There is no file {name}.")


Stage = tuple[str, Callable[[User], None]]


def run_stages(user: User, stages: Sequence[Stage]) -> list[tuple[str, Times]]:
    """Run stages in order, and print a line for each; returns their durations."""
    results = []
    for name, stage in stages:
        before = _now()
        stage(user)
        after = _now()
        times = Times(after.wall - before.wall, after.processor - before.processor)
        print(_row(name, times), flush=True)
        results.append((name, times))
    return results


def print_total(results: Sequence[tuple[str, Times]], limit: float) -> bool:
    """Print the sums and the limit; True if the machine time is within it.

    The machine time is the smaller of both sums: seconds that pass while another program has the
    processor are not of these commands, and seconds of two cores at once pass once.

    Args:
        results: Stages with their durations.
        limit: Largest machine time, in seconds.
    """
    wall = sum(times.wall for _, times in results)
    processor = sum(times.processor for _, times in results)
    machine = min(wall, processor)
    print(_row("total", Times(wall, processor)))
    print(f"machine time {machine / 60:.1f} min, limit {limit / 60:.0f} min")
    return machine <= limit


def print_header() -> None:
    """Print the names of the columns."""
    print(f"{'stage':<44}{'wall':>10}{'processor':>12}", flush=True)


def _row(name: str, times: Times) -> str:
    return f"{name:<44}{times.wall:>8.1f} s{times.processor:>10.1f} s"


def _now() -> Times:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(time.monotonic(), usage.ru_utime + usage.ru_stime)


def fail(message: str) -> None:
    """Print a message and end with exit code 1."""
    print(message, file=sys.stderr)
    sys.exit(1)
