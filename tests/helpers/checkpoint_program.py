"""A process that is killed during saves, or saves to a full disk; results are lines of JSON.

The process loads torch once and forks for each case, so that a case costs milliseconds.
"""

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from grupo.storage import checkpoint, fault_injection
from grupo.storage.checkpoint import SaveFailed
from tests.helpers import checkpoint_contents


def save_three(run: Path) -> None:
    for step in (0, 1, 2):
        checkpoint_contents.save(run, step, syscall=checkpoint_contents.unsynced)


def try_save(run: Path) -> str:
    """The message of a save that fails; "" if it succeeds."""
    try:
        checkpoint_contents.save(run, 3, version=9)
    except SaveFailed as error:
        return str(error)
    return ""


def run_in_child(work: Callable[[], Any]) -> int:
    """Run a function in a child process; returns the signal that ended the child, or 0."""
    if child := os.fork():
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    work()
    os._exit(0)


def print_result(**result: Any) -> None:
    print(json.dumps(result), flush=True)


def killed(root: Path) -> None:
    """Kill a save at each point, then save again."""
    for number, point in enumerate(fault_injection.SAVE_POINTS):
        run = root / str(number)
        save_three(run)
        end_signal = run_in_child(partial(killed_save, run, point))
        found = checkpoint_contents.version(checkpoint_contents.loaded(run))
        checkpoint_contents.save(run, 3, version=9)
        again = checkpoint_contents.version(checkpoint_contents.loaded(run))
        left = [path.name for path in run.glob("tmp.*")]
        print_result(point=point, signal=end_signal, found=found, again=again, left=left)


def killed_save(run: Path, point: str) -> None:
    fault_injection.KILL_AT = f"{point}:1"
    checkpoint_contents.save(run, 3, version=9)


def limited(root: Path) -> None:
    """Save under limits on the file size, from too small to large enough."""
    save_three(root / "0")
    largest = max(path.stat().st_size for path in (root / "0" / "step-00000002").iterdir())
    for limit in (0, 1, 511, 512, 1000, largest - 1, largest):
        run = shutil.copytree(root / "0", root / f"limit{limit}")
        run_in_child(partial(limited_save, run, limit))


def limited_save(run: Path, limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    message = try_save(run)
    print_result(error=message, found=checkpoint_contents.version(checkpoint_contents.loaded(run)))


def filled(root: Path) -> None:
    """Save on a small disk with only a few free pages."""
    run, page = root / "run", os.statvfs(root).f_frsize
    for pages in range(12):
        save_three(run)
        free = os.statvfs(root).f_bavail - pages
        (root / "filler").write_bytes(bytes(free * page))
        message = try_save(run)
        found = checkpoint_contents.version(checkpoint_contents.loaded(run))
        (root / "filler").unlink()
        again = try_save(run) or checkpoint_contents.version(checkpoint_contents.loaded(run))
        print_result(error=message, found=found, again=again)
        shutil.rmtree(run)


def killed_by_environment(root: Path) -> None:
    """Save in this process, which the environment variable kills."""
    for step in range(4):
        checkpoint.save(root / "run", step, {}, {"step": step})
        print_result(saved=step)


if __name__ == "__main__":
    torch.set_num_threads(1)
    cases = (killed, limited, filled, killed_by_environment)
    {case.__name__: case for case in cases}[sys.argv[1]](Path(sys.argv[2]))
