"""Programs that are shut in: what they can do, and all that they cannot."""

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

BOX = Sandbox(time_limit=2.0, memory_mib=256)
HERE = Path(__file__).resolve()


@pytest.fixture
def bwrap():
    """Bubblewrap, which not every machine has."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: there is nothing to shut programs in with")
    try:
        BOX.check()
    except ConfigError as refusal:
        pytest.skip(str(refusal))


@pytest.mark.usefixtures("bwrap")
def test_a_program_is_run_and_what_it_prints_is_read():
    assert BOX.run("import math\nprint(math.comb(5, 2))") == "10"
    assert Python(BOX)("print('ä')") == "ä"
    assert BOX.run("open('/tmp/x', 'w').write('kept'); print(open('x').read())") == "kept"
    assert BOX.run("import os; print(os.listdir('/tmp'))") == "[]"  # each begins anew
    thread = "import threading; t = threading.Thread(target=print, args='t'); t.start(); t.join()"
    assert BOX.run(thread) == "t"


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("open('/etc/passwd')", "FileNotFoundError"),
        (f"open({str(HERE)!r})", "FileNotFoundError"),
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
def test_a_program_that_reaches_out_fails_in_there(program, why):
    said = BOX.run(program)
    assert why in said
    assert "(ended with " in said


@pytest.mark.usefixtures("bwrap")
def test_nobody_is_reached_by_network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()  # from here it is
        said = BOX.run(f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert "ConnectionRefusedError" in said
    said = BOX.run("import socket; socket.create_connection(('1.1.1.1', 53))")
    assert "Network is unreachable" in said


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
    ],
)
def test_a_program_that_outlives_its_limit_is_gone(program):
    began = time.monotonic()
    assert (
        Sandbox(time_limit=0.5).run(f"print(1, flush=True)\n{program}")
        == "1\n(stopped after 0.5 s)"
    )
    assert time.monotonic() - began < 5
    alive = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True)
    ours = [line for line in alive.stdout.splitlines() if line.split()[0] == str(os.getpid())]
    assert not [line for line in ours if "bwrap" in line]


@pytest.mark.usefixtures("bwrap")
def test_what_is_printed_without_end_is_cut():
    assert len(BOX.run("while True: print('x' * 9999)")) < 2 * sandbox.MAX_OUTPUT_BYTES


def recipe(tool):
    return Recipe(
        policy=CausalLM("nowhere"), env=MultiTurn(Toolbox((tool,))), tasks=ReasoningGym("gcd")
    )


def test_a_recipe_whose_programs_cannot_be_shut_in_is_refused(monkeypatch, tmp_path):
    sandbox._check_bwrap.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"^sandbox: bwrap is not here\. Install bubblewrap"):
        check_recipe(recipe(Python()))
    with pytest.raises(ConfigError, match="bwrap is not here"):
        Python()("print(1)")  # nor is it ever run otherwise
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace'\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ConfigError, match=r"^sandbox: bwrap does not work here: .*No permissions"):
        check_recipe(recipe(Python()))
    sandbox._check_bwrap.cache_clear()


@pytest.mark.usefixtures("bwrap")
def test_a_recipe_whose_programs_can_be_shut_in_passes():
    check_recipe(recipe(Python()))
