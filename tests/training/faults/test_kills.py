"""Processes killed during a save, and full disks: earlier checkpoints are not lost."""

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


def run_program(*command: object, **environment: str) -> tuple[int, list[dict]]:
    """The exit code of a process, and the lines of JSON that it printed."""
    process = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **CHILD_ENV, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    return process.returncode, [json.loads(line) for line in process.stdout.splitlines()]


@pytest.mark.slow
def test_a_save_killed_at_any_point_loses_nothing_and_the_next_save_succeeds(tmp_path):
    code, lines = run_program(sys.executable, SAVER, "killed", tmp_path)
    commit = fault_injection.SAVE_POINTS.index("save/latest/renamed")
    assert code == 0
    assert lines == [
        {
            "point": point,
            "signal": signal.SIGKILL,
            "found": 9 if number >= commit else 2,
            "again": 9,
            "left": [],
        }
        for number, point in enumerate(fault_injection.SAVE_POINTS)
    ]


def test_a_save_passes_each_kill_point_once_in_order(tmp_path, monkeypatch):
    class PointRecorder(str):
        names: list[str] = []  # noqa: RUF012

        def startswith(self, prefix, *_):
            self.names.append(prefix.removesuffix(":"))
            return False

    for step in (0, 1, 2):
        checkpoint_contents.save(tmp_path, step)
    monkeypatch.setattr(fault_injection, "KILL_AT", PointRecorder())
    checkpoint_contents.save(tmp_path, 3)
    assert PointRecorder.names == list(fault_injection.SAVE_POINTS)


@pytest.mark.slow
def test_the_environment_variable_names_the_point_and_the_count(tmp_path):
    code, lines = run_program(
        sys.executable, SAVER, "killed_by_environment", tmp_path, GRUPO_KILL_AT="save/renamed:3"
    )
    assert code == -signal.SIGKILL
    assert lines == [{"saved": 0}, {"saved": 1}]
    assert (tmp_path / "run" / "step-00000002").exists()
    assert checkpoint.load_newest(tmp_path / "run").data == {"step": 1}


@pytest.mark.slow
def test_a_file_size_limit_fails_the_save_with_advice(tmp_path):
    code, lines = run_program(sys.executable, SAVER, "limited", tmp_path)
    assert code == 0
    assert len(lines) == 7
    for answer in lines[:-1]:
        assert "Step 3 is not saved: " in answer["error"]
        assert "File too large" in answer["error"]
        assert "ulimit -f" in answer["error"]
        assert answer["found"] == 2
    assert lines[-1] == {"error": "", "found": 9}


@pytest.mark.slow
def test_a_full_disk_fails_the_save_and_the_next_save_succeeds_with_free_space(tmp_path):
    namespace = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    mount = 'mount -t tmpfs -o size=160k none "$1"'
    if (
        not shutil.which("unshare")
        or subprocess.run(
            [*namespace, mount, "sh", tmp_path], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("this system does not let a test mount a disk")
    run = f'{mount} && exec "$2" "$3" filled "$1"'
    code, lines = run_program(*namespace, run, "sh", tmp_path, sys.executable, SAVER)
    assert code == 0
    full = [answer for answer in lines if answer["error"]]
    assert len(full) >= 4
    for answer in full:
        assert "No space left on device" in answer["error"]
        assert answer["found"] == 2
    assert {answer["again"] for answer in lines} == {9}
    assert lines[-1]["error"] == ""
    assert not any(tmp_path.iterdir())  # the mounted disk was private to the process
