"""Processes that die while they save, and disks with no room: nothing saved is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from grupo.storage import checkpoint, fault_injection
from tests.helpers import checkpoint_contents
from tests.helpers.paths import CHILD_ENV, ROOT

SAVER = ROOT / "tests" / "helpers" / "checkpoint_program.py"


def answers(*command: object, **environment: str) -> tuple[int, list[dict]]:
    """How a process ended, and the lines that it said."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **CHILD_ENV, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_save_killed_at_any_point_loses_nothing_and_the_next_one_succeeds(tmp_path):
    code, said = answers(sys.executable, SAVER, "killed", tmp_path)
    moves = fault_injection.SAVE_POINTS.index("save/latest/renamed")
    assert code == 0
    assert said == [
        {
            "point": point,
            "signal": signal.SIGKILL,
            "found": 9 if number >= moves else 2,
            "again": 9,
            "left": [],
        }
        for number, point in enumerate(fault_injection.SAVE_POINTS)
    ]


def test_a_save_passes_each_named_point_once_in_order(tmp_path, monkeypatch):
    class Asked(str):
        passed: list[str] = []  # noqa: RUF012

        def startswith(self, prefix, *_):
            self.passed.append(prefix.removesuffix(":"))
            return False

    for step in (0, 1, 2):
        checkpoint_contents.save(tmp_path, step)
    monkeypatch.setattr(fault_injection, "KILL_AT", Asked())
    checkpoint_contents.save(tmp_path, 3)
    assert Asked.passed == list(fault_injection.SAVE_POINTS)


def test_the_environment_says_where_and_which_time(tmp_path):
    code, said = answers(sys.executable, SAVER, "told", tmp_path, GRUPO_KILL_AT="save/renamed:3")
    assert code == -signal.SIGKILL
    assert said == [{"saved": 0}, {"saved": 1}]
    assert (tmp_path / "run" / "step-00000002").exists()
    assert checkpoint.load(tmp_path / "run").data == {"step": 1}


def test_a_limit_on_the_size_of_files_fails_the_save_and_says_what_to_raise(tmp_path):
    code, said = answers(sys.executable, SAVER, "limited", tmp_path)
    assert code == 0
    assert len(said) == 7
    for answer in said[:-1]:
        assert "Step 3 is not saved: " in answer["said"]
        assert "File too large" in answer["said"]
        assert "ulimit -f" in answer["said"]
        assert answer["found"] == 2
    assert said[-1] == {"said": "", "found": 9}


def test_a_full_disk_fails_the_save_and_the_next_one_succeeds_once_there_is_room(tmp_path):
    apart = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    mount = 'mount -t tmpfs -o size=160k none "$1"'
    if (
        not shutil.which("unshare")
        or subprocess.run(
            [*apart, mount, "sh", tmp_path], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("this system does not let a test mount a disk of its own")
    run = f'{mount} && exec "$2" "$3" filled "$1"'
    code, said = answers(*apart, run, "sh", tmp_path, sys.executable, SAVER)
    assert code == 0
    full = [answer for answer in said if answer["said"]]
    assert len(full) >= 4
    for answer in full:
        assert "No space left on device" in answer["said"]
        assert answer["found"] == 2
    assert {answer["again"] for answer in said} == {9}
    assert said[-1]["said"] == ""
    assert not any(tmp_path.iterdir())  # it was a disk apart
