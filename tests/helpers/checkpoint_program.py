"""A process that saves and is killed, or finds no room; each answer is a line of JSON.

It loads torch once and forks for each case, so that a case costs milliseconds.
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
    """What a failing save says, or nothing."""
    try:
        checkpoint_contents.save(run, 3, version=9)
    except SaveFailed as error:
        return str(error)
    return ""


def in_a_child(work: Callable[[], Any]) -> int:
    """The signal that ended a process doing this work, or 0."""
    if child := os.fork():
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    work()
    os._exit(0)


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def killed(root: Path) -> None:
    """A save killed at each point, and saved again."""
    for number, point in enumerate(fault_injection.SAVE_POINTS):
        run = root / str(number)
        save_three(run)
        ended = in_a_child(partial(killed_save, run, point))
        found = checkpoint_contents.version(checkpoint_contents.loaded(run))
        checkpoint_contents.save(run, 3, version=9)
        again = checkpoint_contents.version(checkpoint_contents.loaded(run))
        left = [path.name for path in run.glob("tmp.*")]
        say(point=point, signal=ended, found=found, again=again, left=left)


def killed_save(run: Path, point: str) -> None:
    fault_injection.KILL_AT = f"{point}:1"
    checkpoint_contents.save(run, 3, version=9)


def limited(root: Path) -> None:
    """Saves under a limit on the size of files, from too small to large enough."""
    save_three(root / "0")
    largest = max(path.stat().st_size for path in (root / "0" / "step-00000002").iterdir())
    for limit in (0, 1, 511, 512, 1000, largest - 1, largest):
        run = shutil.copytree(root / "0", root / f"limit{limit}")
        in_a_child(partial(limited_save, run, limit))


def limited_save(run: Path, limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    said = try_save(run)
    say(said=said, found=checkpoint_contents.version(checkpoint_contents.loaded(run)))


def filled(root: Path) -> None:
    """Saves on a small disk of which all but some pages are taken."""
    run, page = root / "run", os.statvfs(root).f_frsize
    for pages in range(12):
        save_three(run)
        free = os.statvfs(root).f_bavail - pages
        (root / "filler").write_bytes(bytes(free * page))
        said = try_save(run)
        found = checkpoint_contents.version(checkpoint_contents.loaded(run))
        (root / "filler").unlink()
        again = try_save(run) or checkpoint_contents.version(checkpoint_contents.loaded(run))
        say(said=said, found=found, again=again)
        shutil.rmtree(run)


def told(root: Path) -> None:
    """Saves in a process of its own, to be killed by its environment."""
    for step in range(4):
        checkpoint.save(root / "run", step, {}, {"step": step})
        say(saved=step)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"killed": killed, "limited": limited, "filled": filled, "told": told}[sys.argv[1]](
        Path(sys.argv[2])
    )
