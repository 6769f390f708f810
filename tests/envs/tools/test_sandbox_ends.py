"""What is left of sandboxes and tool servers when the process that started them is killed."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends import Bubblewrap
from grupo.envs.tools.backends.cgroups import cgroup_parents
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases
from tests.helpers.paths import CHILD_ENV, ROOT
from tests.helpers.processes import descendants, is_running, wait_until
from tests.helpers.sandbox_attacks.host import as_user, closed_folder

SLEEP = """
import sys
from concurrent.futures import ThreadPoolExecutor
from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends import Bubblewrap
sandbox = Sandbox(time_limit=1000.0, backend=Bubblewrap())
with ThreadPoolExecutor(2) as pool:
    list(pool.map(sandbox.run, ["import time; time.sleep(1000)"] * 2))
"""
ISOLATED = """
import subprocess
from grupo.envs.tools.backends.namespaces import PID_NAMESPACE, isolated_command
from grupo.envs.tools.backends.protocol import ProgramLimits
limits = ProgramLimits(1000.0, 64, 1)
subprocess.run(isolated_command(("sleep", "1000"), limits, namespaces=PID_NAMESPACE))
"""
CONTAINER = """
from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends import Container
Sandbox(time_limit=1000.0, backend=Container("image")).run("print(1)")
"""
CGROUP = """
import subprocess, time
from grupo.envs.tools.backends.cgroups import limited_cgroup
with limited_cgroup(64, 8) as files:
    join = "; ".join(f"echo 0 > {file}" for file in files)
    subprocess.Popen(["/bin/sh", "-c", f"{join}; exec sleep 1000"])
    time.sleep(1000)
"""
ISOLATED_ONCE = """
import subprocess
from grupo.envs.tools.backends.namespaces import isolated_command
from grupo.envs.tools.backends.protocol import ProgramLimits
subprocess.run(isolated_command(("true",), ProgramLimits(1000.0, 64, 1)))
"""
# bubblewrap while it starts: its first process waits for the other one, and does not end with it
STARTING_BWRAP = """#!/bin/sh
sleep 1000 &
wait
"""
# setpriv that asks for the end with its parent when that has ended already
LATE_SETPRIV = """#!/bin/sh
[ "$1" = --pdeathsig ] || exec {setpriv} "$@"
echo begun > {begun}
while [ -d /proc/$PPID ]; do sleep 0.01; done
{setpriv} "$@"
echo $? > {ended}
"""
MCP_SERVER = """
import grupo.envs.tools.mcp_connection as connection
connection.McpConnection({command!r}, {{}}, "").list_tools()
"""
# an engine that notes its calls: a container runs until it is removed
ENGINE = """#!/bin/sh
echo "$@" | tr '\n' ' ' >> {calls}
echo >> {calls}
case $1 in
    run) sleep 1000 ;;
    ps) echo 0123abcd ;;
esac
"""
ENDS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]


@contextmanager
def python_program(code, user="this user", **variables):
    """A Python program in a session of its own, as a user of this machine."""
    process = subprocess.Popen(
        as_user(user, [sys.executable, "-c", code]),
        cwd=ROOT,
        env={**os.environ, **CHILD_ENV, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def with_tool(folder, name, script):
    """The search path with a script in a folder in the place of a program."""
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def cgroups_of(process):
    """The cgroups that a process has made."""
    return [f for parent in cgroup_parents() for f in parent.glob(f"grupo-{process}-*")]


def programs_of(process, name):
    """The process ids of the programs with a name that a process has started."""
    return [int(folder.name) for folder in descendants(process) if name_of(folder) == name]


def name_of(folder):
    """The name of a process; "" if it has ended."""
    try:
        return (folder / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.fixture(params=fast_cases({"ordinary user"}, ["this user", "ordinary user"]))
def user(request):
    """A user that can start bubblewrap."""
    if request.param == "ordinary user" and os.getuid() != 0:
        pytest.skip("only root can start a sandbox as another user")
    if request.param == "ordinary user" and (closed := closed_folder(ROOT / "grupo")):
        pytest.skip(f"an ordinary user may not enter {closed}")
    try:
        Sandbox(backend=Bubblewrap()).check()
    except ConfigError as error:
        pytest.skip(str(error))
    return request.param


@pytest.mark.parametrize("end", fast_cases(1, [signal.SIGKILL, signal.SIGTERM]))
def test_no_process_and_no_cgroup_of_a_sandbox_is_left(user, end):
    with python_program(SLEEP, user) as parent:
        wait_until(lambda: len(programs_of(parent.pid, "bwrap")) >= 2, 60)
        processes = [int(folder.name) for folder in descendants(parent.pid)]
        if user == "this user":
            assert len(cgroups_of(parent.pid)) == 2 * len(cgroup_parents())
        parent.send_signal(end)
        wait_until(lambda: not any(map(is_running, processes)), 20)
        wait_until(lambda: not cgroups_of(parent.pid), 20)


@pytest.mark.slow
def test_a_process_that_does_not_end_with_its_parent_is_killed_with_its_cgroup():
    if not cgroup_parents():
        pytest.skip("this user may not make cgroups here")
    with python_program(CGROUP) as parent:
        wait_until(lambda: programs_of(parent.pid, "sleep") != [], 60)
        (process,) = programs_of(parent.pid, "sleep")
        parent.kill()
        wait_until(lambda: not is_running(process) and not cgroups_of(parent.pid), 20)


def test_no_process_of_a_namespace_is_left(user):
    with python_program(ISOLATED, user) as parent:
        wait_until(lambda: programs_of(parent.pid, "sleep") != [], 60)
        processes = [int(folder.name) for folder in descendants(parent.pid)]
        parent.kill()
        wait_until(lambda: not any(map(is_running, processes)), 20)


@pytest.mark.slow
def test_no_process_of_a_sandbox_that_is_being_started_is_left():
    user = "this user" if os.getuid() else "ordinary user"
    if os.getuid() == 0 and (closed := closed_folder(ROOT / "grupo")):
        pytest.skip(f"an ordinary user may not enter {closed}")
    with tempfile.TemporaryDirectory() as folder:  # that of pytest is closed to other users
        Path(folder).chmod(0o755)
        path = with_tool(Path(folder), "bwrap", STARTING_BWRAP)
        with python_program(SLEEP, user, PATH=path) as parent:
            wait_until(lambda: len(programs_of(parent.pid, "sleep")) == 2, 60)
            processes = [int(folder.name) for folder in descendants(parent.pid)]
            parent.kill()
            wait_until(lambda: not any(map(is_running, processes)), 20)


@pytest.mark.slow
def test_a_sandbox_whose_parent_has_ended_does_not_start(tmp_path):
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    script = LATE_SETPRIV.format(begun=begun, ended=ended, setpriv=shutil.which("setpriv"))
    path = with_tool(tmp_path, "setpriv", script)
    with python_program(ISOLATED_ONCE, PATH=path) as parent:
        wait_until(begun.exists, 60)
        parent.kill()
        parent.wait()
        wait_until(lambda: ended.exists() and ended.read_text().endswith("\n"), 20)
    assert ended.read_text() == "1\n"


@pytest.mark.slow
def test_no_container_is_left(tmp_path):
    calls = tmp_path / "calls"
    (tmp_path / "podman").write_text(ENGINE.format(calls=shlex.quote(str(calls))))
    (tmp_path / "podman").chmod(0o755)
    with python_program(CONTAINER, PATH=f"{tmp_path}:{os.environ['PATH']}") as parent:
        wait_until(lambda: calls.exists() and calls.read_text().endswith("\n"), 60)
        assert calls.read_text().startswith("run --rm --interactive")
        parent.kill()
        wait_until(lambda: "rm --force 0123abcd" in calls.read_text(), 20)
    lines = calls.read_text().splitlines()
    assert lines[1].startswith(f"ps --all --quiet --filter name=^grupo-{parent.pid}-")
    assert f"--name=grupo-{parent.pid}-" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("end", fast_cases(1, ENDS))
def test_no_mcp_server_is_left(tmp_path, end):
    pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")
    pid_file = tmp_path / "pid"
    # it reads no input, and ignores the signal that asks it to end
    script = f"trap '' TERM; echo $$ > {shlex.quote(str(pid_file))}; exec sleep 1000"
    command = shlex.join(("/bin/sh", "-c", script))
    with python_program(MCP_SERVER.format(command=command)) as parent:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"), 60)
        server = int(pid_file.read_text())
        assert is_running(server)
        parent.send_signal(end)
        wait_until(lambda: not is_running(server), 20)
