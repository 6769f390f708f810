"""A lock is held by one process, and released when the process dies."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from grupo.storage.lock import Lock
from grupo.util.errors import ConfigError

# A process that takes the lock, starts a sleeping child, and is killed.
ORPHANS = """
import os, signal, sys, time
from pathlib import Path
from grupo.storage.lock import Lock
lock = Lock(Path(sys.argv[1]))
if child := os.fork():
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
os.closerange(1, 3)
time.sleep(600)
"""


def test_a_lock_is_held_by_one_holder_at_a_time(tmp_path):
    path = tmp_path / "lock"
    with Lock(path):
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"in use: process {os.getpid()} trains there"):
                Lock(path)
    with Lock(path):
        assert path.read_text() == str(os.getpid())


def test_an_unreferenced_lock_is_released(tmp_path):
    Lock(tmp_path / "lock")
    with Lock(tmp_path / "lock"):
        pass


def test_the_lock_of_a_killed_process_is_released_even_if_its_child_lives(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", ORPHANS, tmp_path / "lock"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (-signal.SIGKILL, "")
    orphan = int(process.stdout)
    with Lock(tmp_path / "lock"):
        os.kill(orphan, signal.SIGKILL)  # the child was alive until now


def test_a_path_that_cannot_be_locked_is_named_in_the_error(tmp_path):
    with pytest.raises(
        ConfigError, match=r"missing/lock cannot be locked: No such file or directory"
    ):
        Lock(tmp_path / "missing" / "lock")


def test_an_error_of_closing_the_lock_does_not_replace_the_error_of_the_run(tmp_path, monkeypatch):
    def failing_close(file):
        os.closerange(file, file + 1)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "close", failing_close)
    with pytest.raises(ValueError, match="of the run"), Lock(tmp_path / "lock"):
        raise ValueError("of the run")
    monkeypatch.undo()
    with Lock(tmp_path / "lock"):
        pass
