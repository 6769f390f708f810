"""The sandbox: programs run in it, and cannot reach anything outside of it."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from grupo import CausalLM, Recipe
from grupo.config.validate import check_recipe
from grupo.core.errors import ConfigError
from grupo.envs import MultiTurn
from grupo.envs.tools import Python, Sandbox, Toolbox, sandbox
from grupo.tasks import ReasoningGym

SANDBOX = Sandbox(time_limit=2.0, memory_mib=256)
THIS_FILE = Path(__file__).resolve()


@pytest.fixture
def bwrap():
    """Skips the test on machines without a working bubblewrap."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    try:
        SANDBOX.check()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("bwrap")
def test_run_returns_what_the_program_prints():
    assert SANDBOX.run("import math\nprint(math.comb(5, 2))") == "10"
    assert Python(SANDBOX)("print('ä')") == "ä"
    assert SANDBOX.run("open('/tmp/x', 'w').write('kept'); print(open('x').read())") == "kept"
    assert SANDBOX.run("import os; print(os.listdir('/tmp'))") == "[]"  # every run has a new folder
    thread = "import threading; t = threading.Thread(target=print, args='t'); t.start(); t.join()"
    assert SANDBOX.run(thread) == "t"


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("open('/etc/passwd')", "FileNotFoundError"),
        (f"open({str(THIS_FILE)!r})", "FileNotFoundError"),
        (f"open({str(Path.home() / '.profile')!r})", "FileNotFoundError"),
        ("print(open('/proc/1/environ').read()[9999])", "Error"),
        ("open('/usr/grupo', 'w')", "Read-only file system"),
        ("open('/grupo', 'w')", "Read-only file system"),
        ("open('/dev/grupo', 'w')", "Read-only file system"),
        ("open('/dev/shm/grupo', 'w')", "Read-only file system"),
        ("import os\nwhile True: os.fork()", "PermissionError"),
        ("import subprocess; subprocess.run(['/usr/bin/env'])", "PermissionError"),
        ("x = bytearray(1 << 30)", "MemoryError"),
        ("x = []\nwhile True: x.append(bytearray(1 << 24))", "MemoryError"),
        ("open('x', 'wb').write(bytes(1 << 22))", "File too large"),
        ("for i in range(99): open(f'{i}', 'wb').write(bytes(1 << 20))", "No space left"),
        ("import resource as r; r.setrlimit(r.RLIMIT_AS, (-1, -1))", "not allowed to raise"),
        (
            "import ctypes as c; c.CDLL(None, use_errno=True).unshare(0x10000000)\n"
            "raise OSError(c.get_errno(), 'unshared')",
            "unshared",
        ),
        (
            "import ctypes as c; print(c.CDLL(None, use_errno=True).shmget(0, 9, 512))\n"
            "raise OSError(c.get_errno(), 'shared')",
            "-1",
        ),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "(ended with 3)"),
    ],
)
def test_a_program_that_exceeds_the_sandbox_fails(program, message):
    output = SANDBOX.run(program)
    assert message in output
    assert "(ended with " in output


@pytest.mark.usefixtures("bwrap")
def test_a_program_has_no_network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(
            ("127.0.0.1", port)
        ).close()  # reachable from outside of the sandbox
        output = SANDBOX.run(f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert "ConnectionRefusedError" in output
    output = SANDBOX.run("import socket; socket.create_connection(('1.1.1.1', 53))")
    assert "Network is unreachable" in output


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
    ],
)
def test_a_program_is_killed_after_its_time_limit(program):
    start = time.monotonic()
    output = Sandbox(time_limit=0.5).run(f"print(1, flush=True)\n{program}")
    assert output == "1\n(stopped after 0.5 s)"
    assert time.monotonic() - start < 5
    processes = subprocess.run(
        ["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    children = [line for line in processes if line.split()[0] == str(os.getpid())]
    assert not [line for line in children if "bwrap" in line]


@pytest.mark.usefixtures("bwrap")
def test_endless_output_is_truncated():
    assert len(SANDBOX.run("while True: print('x' * 9999)")) < 2 * sandbox.MAX_OUTPUT_BYTES


def recipe(tool):
    return Recipe(
        policy=CausalLM("nowhere"), env=MultiTurn(Toolbox((tool,))), tasks=ReasoningGym("gcd")
    )


def test_a_recipe_is_refused_where_bubblewrap_is_missing_or_does_not_work(monkeypatch, tmp_path):
    sandbox._check_bwrap.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"^sandbox: bwrap is not installed\. Install bubble"):
        check_recipe(recipe(Python()))
    with pytest.raises(ConfigError, match="bwrap is not installed"):
        Python()("print(1)")  # it never runs without a sandbox
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace'\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(
        ConfigError, match=r"^sandbox: bwrap does not work on this machine: .*No per"
    ):
        check_recipe(recipe(Python()))
    sandbox._check_bwrap.cache_clear()


@pytest.mark.usefixtures("bwrap")
def test_a_recipe_is_accepted_where_bubblewrap_works():
    check_recipe(recipe(Python()))
