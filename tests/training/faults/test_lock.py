"""A lock is held by one, and never by the dead."""

import os
import signal
import subprocess
import sys

import pytest

from grupo.core.errors import ConfigError
from grupo.storage.lock import Lock

# It takes the lock, leaves a child behind that sleeps, and is killed.
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


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    path = tmp_path / "lock"
    with Lock(path):
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"in use: process {os.getpid()} trains there"):
                Lock(path)
    with Lock(path):
        assert path.read_text() == str(os.getpid())


def test_a_lock_that_nobody_refers_to_any_more_is_free(tmp_path):
    Lock(tmp_path / "lock")
    with Lock(tmp_path / "lock"):
        pass


def test_a_killed_process_leaves_no_lock_even_if_its_children_live_on(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS, tmp_path / "lock"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    orphan = int(done.stdout)
    with Lock(tmp_path / "lock"):
        os.kill(orphan, signal.SIGKILL)  # it was alive all the time


def test_a_place_that_cannot_be_locked_is_refused_by_name(tmp_path):
    with pytest.raises(
        ConfigError, match=r"missing/lock cannot be locked: No such file or directory"
    ):
        Lock(tmp_path / "missing" / "lock")
