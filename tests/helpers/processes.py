"""The processes that descend from this one, as the kernel lists them."""

import os
from pathlib import Path


def descendants() -> list[Path]:
    """The folder in /proc of each running process that this one has started, at any depth."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    return [Path(f"/proc/{pid}") for pid in parents if _descends(pid, parents)]


def new_descendants(before: list[Path]) -> list[Path]:
    """The descendants that are not in `before`, such as the processes of other tests."""
    return [process for process in descendants() if process not in before]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid := parents.get(pid, 0):
        if pid == os.getpid():
            return True
    return False
