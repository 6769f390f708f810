"""Programs of the system in the sandbox: their files, results, limits and processes."""

import os
import sys
import time
from pathlib import Path

import pytest

from grupo.envs.tools import ProgramSandbox, program_sandbox
from grupo.envs.tools.backends import Bubblewrap, Gvisor, ProgramLimits
from grupo.envs.tools.backends import bubblewrap as bubblewrap_module
from grupo.util.errors import ConfigError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")


@pytest.fixture(autouse=True)
def _needs_a_backend():
    try:
        Bubblewrap().check_machine()
    except ConfigError as error:
        pytest.skip(str(error))


def shell(script: str, **fields) -> ProgramSandbox:
    """A sandbox that runs a script of sh."""
    return ProgramSandbox(("sh", "-c", script), backend=Bubblewrap(), **fields)


def test_a_program_reads_its_files_and_its_input():
    run = shell("cat a.txt b; cat; ls -l a.txt >&2; exit 3").run(
        {"a.txt": "é\n", "b": b"\x00"}, "in"
    )
    assert (run.exit_code, run.printed, run.message) == (3, "é\n\x00in", "")
    assert run.errors.startswith("-rwx------")


def test_declared_output_files_are_returned_and_no_others():
    run = shell("echo 1 > a; echo 2 > b; printf '\\377' > c", outputs=("a", "c", "missing")).run({})
    assert run.outputs == {"a": b"1\n", "c": b"\xff"}


@pytest.mark.parametrize(
    "make", ["ln -s /usr/bin/env out", "mkdir out", "ln -s . out", "ln /usr/bin/env out"]
)
def test_only_a_regular_file_of_its_own_is_an_output(make):
    assert shell(make, outputs=("out",)).run({}).outputs == {}


def test_it_starts_processes():
    run = shell("echo $(echo one | tr o O) & wait; (exit 4); echo $?").run({})
    assert run.printed == "One\n4\n"


def test_processes_are_counted():
    script = "for i in $(seq 40); do sleep 5 & done; echo all"
    run = shell(script, processes=10).run({})
    assert "all" not in run.printed
    assert "fork" in run.errors
    assert shell(script, processes=60).run({}).printed == "all\n"


def test_all_processes_end_with_the_program():
    seconds = 1000.25 + os.getpid()
    shell(f"setsid sleep {seconds} & echo ended").run({})
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _is_running(f"sleep {seconds}"):
        time.sleep(0.05)
    assert not _is_running(f"sleep {seconds}")


def test_processes_end_at_the_time_limit():
    seconds = 2000.25 + os.getpid()
    run = shell(f"setsid sleep {seconds} & wait", time_limit=0.5).run({})
    assert (run.exit_code, run.message) == (None, "(stopped after 0.5 s)")
    assert not _is_running(f"sleep {seconds}")


def test_a_flood_of_output_has_no_result():
    run = shell("yes").run({})
    assert run.exit_code is None or run.exit_code < 0
    run = shell("yes > out", outputs=("out",)).run({})
    assert run.exit_code != 0


@pytest.mark.parametrize(
    "script",
    [
        'kill -9 $PPID; echo \'{"code": 0, "texts": ["", ""], "outputs": {}}\'',
        'echo \'{"code": 0, "texts": ["", ""], "outputs": {}}\' > /proc/$PPID/fd/1',
        "exec 9>/dev/fd/9",
        "kill -STOP $PPID",
        "kill -9 -1",
    ],
)
def test_a_program_cannot_forge_a_result(script):
    run = shell(script + "; exit 1", time_limit=1.0).run({})
    assert run.exit_code != 0
    assert not run.outputs


def test_equal_runs_are_made_once():
    sandbox = shell("date +%N")
    assert sandbox.run({}) is sandbox.run({})
    assert sandbox.run({"a": "1"}).printed != sandbox.run({"a": "2"}).printed


def test_an_exit_code_127_is_a_result():
    assert shell("exit 127").run({}).exit_code == 127


def test_a_run_that_was_stopped_is_made_again(monkeypatch):
    sandbox = shell("echo done")
    with monkeypatch.context() as patch:
        patch.setattr(program_sandbox, "run_program", lambda *arguments: "(stopped after 10.0 s)")
        assert sandbox.run({}).message == "(stopped after 10.0 s)"
    assert sandbox.run({}).printed == "done\n"


def test_a_missing_program_is_named_with_its_package():
    sandbox = ProgramSandbox(("gcx",), backend=Bubblewrap(), package="the package gcx")
    with pytest.raises(
        ConfigError, match=r"'gcx' is not installed. It belongs to the package gcx."
    ):
        sandbox.check()


@pytest.mark.parametrize("name", ["a/b", "..", "/etc/passwd", "", "a\0b"])
def test_a_name_with_a_folder_is_refused(name):
    with pytest.raises(ConfigError, match=r"Allowed: the name of a file, without a folder"):
        shell("true").run({name: ""})
    if name:
        with pytest.raises(ConfigError, match=r"ProgramSandbox.outputs"):
            shell("true", outputs=(name,))


def test_no_command_is_refused():
    with pytest.raises(ConfigError, match=r"ProgramSandbox.command: \(\)"):
        ProgramSandbox(())


def test_a_machine_that_counts_no_processes_is_refused(monkeypatch):
    monkeypatch.setattr(bubblewrap_module, "cgroup_parents", dict)
    monkeypatch.setattr(bubblewrap_module, "_limits_threads", lambda: False)
    limits = ProgramLimits(1.0, 64, 1, processes=4)
    with (
        pytest.raises(ConfigError, match="does not count the processes"),
        Bubblewrap().launch(limits),
    ):
        pass
    with Bubblewrap().launch(ProgramLimits(1.0, 64, 1)):
        pass


def test_gvisor_is_refused_because_it_counts_no_processes():
    sandbox = ProgramSandbox(("true",), backend=Gvisor())
    with pytest.raises(ConfigError, match=r"gVisor does not count the processes"):
        sandbox.run({})


def _is_running(command: str) -> bool:
    """True if a process of this machine has the command."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")[:-1]
        except OSError:
            continue
        if b" ".join(words).decode(errors="replace") == command:
            return True
    return False
