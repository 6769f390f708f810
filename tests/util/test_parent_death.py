"""What runs, and what ends, when a process has ended, however it ended."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from grupo.util.parent_death import ending_with_parent, name_prefix
from tests.helpers.paths import CHILD_ENV
from tests.helpers.processes import is_running, wait_until

CLEAN_UP = """
import sys, time
from grupo.util.parent_death import run_after_end
command = ("/bin/sh", "-c", 'echo "$VALUE" >> "$1"', "sh", sys.argv[1])
for _ in range(2):
    run_after_end(*command, environment={"VALUE": "x"})
print("ready", flush=True)
# a signal that arrives just before a sleep begins is handled when that sleep has ended
for _ in range(int(sys.argv[2])):
    time.sleep(0.1)
"""
START_CHILD = """
import subprocess, time
from grupo.util.parent_death import ending_with_parent
command = ("/bin/sh", "-c", "trap '' TERM; exec sleep 1000")  # it ignores the signal
child = subprocess.Popen(ending_with_parent(command))
print(child.pid, flush=True)
for _ in range(10000):
    time.sleep(0.1)
"""
FORK = """
import os
from grupo.util.parent_death import name_prefix
own = name_prefix()
read_end, write_end = os.pipe()
if (child := os.fork()) == 0:
    os.write(write_end, name_prefix().encode())
    os._exit(0)
os.waitpid(child, 0)
print(own, child, os.read(read_end, 100).decode(), flush=True)
"""
ENDS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]


@contextmanager
def python_program(code, *arguments):
    """A program in a session of its own, and the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **CHILD_ENV},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("end", [*ENDS, None])
def test_a_command_runs_once_when_the_process_has_ended(tmp_path, end):
    file = tmp_path / "done"
    with python_program(CLEAN_UP, str(file), "0" if end is None else "10000") as (process, line):
        assert line == "ready"
        if end is not None:
            assert not file.exists()
            os.killpg(process.pid, end)
        wait_until(lambda: file.exists() and file.read_text() == "x\n", 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sends the signal")
@pytest.mark.parametrize("end", ENDS)
def test_a_child_ends_with_its_parent(end):
    with python_program(START_CHILD) as (process, line):
        child = int(line)
        wait_until(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n", 20)
        process.send_signal(end)
        wait_until(lambda: not is_running(child), 20)


def test_the_command_keeps_its_arguments_and_its_exit_code():
    command = ending_with_parent(
        (sys.executable, "-c", "import sys; sys.exit(len(sys.argv))", "a b")
    )
    assert subprocess.run(command, check=False).returncode == 2


def test_a_forked_process_has_names_of_its_own():
    with python_program(FORK) as (process, line):
        own, child, of_child = line.split()
        assert own.startswith(f"grupo-{process.pid}-")
        assert of_child.startswith(f"grupo-{child}-")
    assert name_prefix() == name_prefix()
