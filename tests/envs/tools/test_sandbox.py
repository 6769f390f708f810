"""The sandbox: what programs print, how they are stopped, and what is left of them."""

import fcntl
import os
import resource
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grupo import CausalLM, Recipe
from grupo.config.validate import check_recipe
from grupo.envs import MultiTurn
from grupo.envs.tools import Python, Sandbox, Toolbox
from grupo.envs.tools.backends import (
    Bubblewrap,
    FirstAvailable,
    bubblewrap,
    cgroups,
    first_available,
)
from grupo.envs.tools.backends.namespaces import PID_NAMESPACE, isolated_command
from grupo.envs.tools.backends.protocol import MAX_OUTPUT_BYTES, ProgramLimits
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError
from grupo.util.parent_death import name_prefix
from tests.helpers.processes import descendants, new_descendants

SANDBOX = Sandbox(time_limit=10.0, memory_mib=256)
IMPATIENT = Sandbox(time_limit=0.5, memory_mib=256)
LONE_SURROGATE = "print('\ud800')"


@pytest.fixture
def backend():
    """Skips the test on machines without a backend."""
    try:
        SANDBOX.check()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture
def no_cached_checks():
    """Backends are checked anew, in the test and after it."""
    caches = (first_available._first_available, bubblewrap._check_bubblewrap)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("backend")
def test_run_returns_what_the_program_prints():
    assert SANDBOX.run("import math\nprint(math.comb(5, 2))") == "10"
    assert Python(SANDBOX)("print('ä')") == "ä"
    assert SANDBOX.run("open('/tmp/x', 'w').write('kept'); print(open('x').read())") == "kept"
    assert SANDBOX.run("import os; print(os.listdir('/tmp'))") == "[]"  # every run has a new folder
    thread = "import threading; t = threading.Thread(target=print, args='t'); t.start(); t.join()"
    assert SANDBOX.run(thread) == "t"
    assert SANDBOX.run("import asyncio; asyncio.run(asyncio.sleep(0)); print(1)") == "1"


@pytest.mark.usefixtures("backend")
def test_locks_of_files_have_no_effect_on_other_programs():
    lock = "import fcntl, os; f = open(os.__file__); {}; print('locked')"
    kinds = ("fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", "fcntl.lockf(f, fcntl.LOCK_SH)")
    with open(os.__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [SANDBOX.run(lock.format(kind)) for kind in kinds] == ["locked", "locked"]
    database = "import sqlite3; c = sqlite3.connect('/tmp/x'); c.execute('create table t(a)')"
    assert SANDBOX.run(f"{database}; c.commit(); print(c.in_transaction)") == "False"


@pytest.mark.usefixtures("backend")
def test_a_crash_starts_no_program_of_the_host():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("the hard limit of this process is 0 already")
    limit = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    assert SANDBOX.run(limit) == "(1, 1)"  # 0 does not apply to a core_pattern that is a pipe


@pytest.mark.usefixtures("backend")
def test_a_long_program_and_a_long_output_pass_unchanged():
    text = "0123456789" * 100_000
    assert SANDBOX.run(f"print('{text}')") == text


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero\n(ended with 1)"),
        ("raise SystemExit(3)", "(ended with 3)"),
        ("x = bytearray(1 << 30)", "MemoryError\n(ended with 1)"),
        ("import os; os.fork()", "Operation not permitted\n(ended with 1)"),
        ("import socket; socket.socket()", "Operation not permitted\n(ended with 1)"),
        ("open('/etc/passwd')", "No such file or directory: '/etc/passwd'\n(ended with 1)"),
        ("print('\0')", "source code string cannot contain null bytes\n(ended with 1)"),
    ],
)
def test_the_answer_to_a_failing_program_ends_with_the_reason(program, message):
    assert SANDBOX.run(program).endswith(message)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "import os, time; os.dup2(os.open('/dev/null', 1), 1); os.close(2); time.sleep(60)",
    ],
)
def test_a_program_is_killed_after_its_time_limit(program):
    before = descendants()
    start = time.monotonic()
    assert IMPATIENT.run(f"print(1, flush=True)\n{program}") == "1\n(stopped after 0.5 s)"
    assert time.monotonic() - start < 5
    assert new_descendants(before) == []


@pytest.mark.usefixtures("backend")
def test_endless_output_is_truncated_and_stopped():
    before = descendants()
    output = SANDBOX.run("while True: print('x' * 9999)")
    text, _, message = output.rpartition("\n")
    assert message == f"(stopped after {MAX_OUTPUT_BYTES} bytes of output)"
    assert MAX_OUTPUT_BYTES - 2 < len(text) <= MAX_OUTPUT_BYTES
    assert new_descendants(before) == []


@pytest.fixture(scope="module")
def running_processes():
    """Status and environment of each process of a sandbox while its program runs."""
    try:
        SANDBOX.check()
    except ConfigError as error:
        pytest.skip(str(error))
    before = descendants()
    thread = threading.Thread(target=SANDBOX.run, args=("import time; time.sleep(1)",))
    thread.start()
    # before its launcher is bwrap, the only child is a copy of this process
    while {b"bwrap", b"python"} - {_read(p / "comm").strip()[:6] for p in new_descendants(before)}:
        assert thread.is_alive()
        time.sleep(0.02)
    processes = new_descendants(before)
    states = [(_read(p / "status").decode(), _read(p / "environ")) for p in processes]
    thread.join()
    return states


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_no_process_of_a_sandbox_is_root_outside_of_it(running_processes):
    assert len(running_processes) >= 2  # the program and its launcher
    for status, _ in running_processes:
        fields = dict(line.split(":", 1) for line in status.splitlines())
        assert "0" not in fields["Uid"].split()
        assert "0" not in fields["Gid"].split()
        assert "0" not in fields["Groups"].split()


def test_no_process_of_a_sandbox_has_variables_of_this_one(running_processes):
    assert b"PATH=" in Path("/proc/self/environ").read_bytes()
    for _, environment in running_processes:
        names = {variable.partition(b"=")[0] for variable in environment.split(b"\0")}
        assert names <= {b"", b"PWD", b"LC_CTYPE", b"OLDPWD"}


def _resources(folder):
    parents, name = cgroups.cgroup_parents(), f"{name_prefix()}*"
    cgroup_folders = [str(folder) for parent in parents for folder in parent.glob(name)]
    return (
        sorted(os.listdir("/proc/self/fd")),
        sorted(os.listdir(folder)),
        [process.name for process in descendants()],
        cgroup_folders,
    )


def _threads():
    return {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("backend")
def test_a_lone_surrogate_starts_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, threads = _resources(tmp_path), _threads()
    with pytest.raises(UnicodeEncodeError):
        SANDBOX.run(LONE_SURROGATE)
    assert _resources(tmp_path) == before
    assert _threads() <= threads
    assert SANDBOX.run(LONE_SURROGATE.replace("\ud800", "a")) == "a"


def _soak(calls, folder):
    """Runs programs of all kinds concurrently; the resources before and after."""

    def run(index):
        if index % 50 == 7:
            with pytest.raises(UnicodeEncodeError):
                SANDBOX.run(LONE_SURROGATE)
        elif index % 50 == 19:
            assert IMPATIENT.run("while True: pass").endswith("(stopped after 0.5 s)")
        elif index % 50 == 31:
            assert "bytes of output" in SANDBOX.run("while True: print('x' * 9999)")
        else:
            assert SANDBOX.run(f"print({index})") == str(index)

    before = _resources(folder)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(calls)))
    return before, _resources(folder)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("calls", [50, pytest.param(5000, marks=pytest.mark.slow)])
def test_many_runs_leave_nothing_behind(calls, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    threads = _threads()
    before, after = _soak(calls, tmp_path)
    assert after == before
    assert _threads() <= threads  # those of other tests may end meanwhile


def recipe(tool):
    return Recipe(
        policy=CausalLM("nowhere"), env=MultiTurn(Toolbox((tool,))), tasks=ReasoningGym("gcd")
    )


@pytest.mark.usefixtures("no_cached_checks")
def test_a_recipe_is_refused_where_no_backend_is_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    reasons = (
        r"^sandbox: no backend works on this machine\. bwrap is not installed\. Install bubblewrap"
        r".* runsc is not installed.* podman or docker is not installed"
    )
    with pytest.raises(ConfigError, match=reasons):
        check_recipe(recipe(Python()))
    with pytest.raises(ConfigError, match="bwrap is not installed"):
        Python()("print(1)")  # it never runs without a sandbox


@pytest.mark.usefixtures("no_cached_checks")
def test_a_recipe_is_refused_where_the_backend_does_not_work(monkeypatch, tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)  # where root starts the sandbox, another user runs it
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace'\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = Python(Sandbox(backend=FirstAvailable((Bubblewrap(),))))
    message = r"Bubblewrap does not work on this machine: bwrap: No permissions to create"
    with pytest.raises(ConfigError, match=message):
        check_recipe(recipe(tool))


@pytest.mark.usefixtures("backend")
def test_a_recipe_is_accepted_where_a_backend_works():
    check_recipe(recipe(Python()))


@pytest.mark.usefixtures("backend")
def test_limits_that_need_a_cgroup_are_listed_where_there_is_none(monkeypatch):
    sandbox = Sandbox(backend=Bubblewrap())
    monkeypatch.setattr(bubblewrap, "cgroup_parents", lambda: {Path("/"): ("memory", "pids")})
    assert sandbox.unavailable_limits() == ()
    monkeypatch.setattr(bubblewrap, "cgroup_parents", dict)
    assert "memory of the kernel" in sandbox.unavailable_limits()[0]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"memory_mib": 1},
            r"fails: \w*Error.* Allowed: .* memory_mib \(1\) .* with which Python starts",
        ),
        ({"time_limit": 1e-300}, r"fails: \(stopped after 1e-300 s\)\. Allowed: a time_limit"),
    ],
)
def test_limits_in_which_no_program_runs_are_refused(fields, reason):
    with pytest.raises(ConfigError, match=reason):
        Sandbox(**fields).check()


@pytest.mark.usefixtures("backend")
def test_the_longest_time_limit_is_accepted():
    Sandbox(time_limit=1e9).check()


def test_a_pid_namespace_has_a_proc_of_its_own():
    number = "cd -P /proc/self && basename $(pwd -P) && echo $$"
    limits = ProgramLimits(time_limit=10.0, memory_mib=64, disk_mib=1)
    command = isolated_command(("/bin/sh", "-c", number), limits, namespaces=PID_NAMESPACE)
    in_proc, own = subprocess.run(command, capture_output=True, text=True).stdout.split()
    assert in_proc == own


def test_a_sandbox_without_a_time_limit_is_refused():
    with pytest.raises(ConfigError, match=r"Sandbox\.time_limit"):
        Sandbox(time_limit=float("inf"))
