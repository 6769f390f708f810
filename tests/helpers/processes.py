"""Running processes, as the kernel lists them."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition; the test fails if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended may still be listed as a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it has ended before, or while it is read
        return False
    return state != "Z"


def descendants(ancestor: int | None = None) -> list[Path]:
    """The folder in /proc of each running process that a process has started, at any depth.

    Args:
        ancestor: The process id; by default this process.
    """
    ancestor = ancestor or os.getpid()
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    return [
        Path(f"/proc/{pid}") for pid in parents if _descends(pid, ancestor or os.getpid(), parents)
    ]


def new_descendants(before: list[Path]) -> list[Path]:
    """The descendants that are not in `before`, such as the processes of other tests."""
    return [process for process in descendants() if process not in before]


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid := parents.get(pid, 0):
        if pid == ancestor:
            return True
    return False
