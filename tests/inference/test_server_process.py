"""Servers that are ours start when needed and end when we do, however we end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grupo.core.errors import ConfigError
from grupo.inference.http_client import EngineError
from grupo.inference.server_process import ManagedServer
from grupo.inference.vllm import Vllm, VllmEngine
from tests.helpers import fake_vllm
from tests.helpers.vllm_fixtures import BOUNDS, OLD, assert_all_answered_once


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An interpreter whose vLLM is the fake; `step_value` beside it holds the servers' process ids."""
    (tmp_path / "mark").write_text("")
    monkeypatch.setenv("FAKE_MARK", str(tmp_path / "mark"))
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_vllm.__file__}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def started(python: str) -> list[int]:
    """The servers that were started."""
    return [int(line) for line in Path(python).with_name("mark").read_text().split()]


def left_over(python: str) -> list[str]:
    """What was not removed."""
    return sorted(path.name for path in Path(python).with_name("temporary").iterdir())


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(process: int) -> bool:
    """Is it, within a while?"""
    return soon(lambda: not alive(process))


def soon(true: Callable[[], bool]) -> bool:
    """Does it become true within ten seconds?"""
    until = time.monotonic() + 10
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


def ours(python: str, **more: Any) -> VllmEngine:
    return Vllm(python=python, **({"patience": 2.0, "at_once": 8} | more)).build("m", BOUNDS)


def test_a_server_of_ours_is_started_when_needed_and_ended_on_closing(python):
    engine = ours(python)
    assert started(python) == []
    engine.load(OLD)
    assert_all_answered_once(engine)
    (process,) = started(python)
    assert alive(process)
    engine.close()
    assert not alive(process)
    assert left_over(python) == []


@pytest.mark.parametrize("deaths", [1, 3])
def test_a_server_of_ours_that_dies_is_started_anew(python, deaths, monkeypatch):
    monkeypatch.setenv("FAKE_DEATHS", str(deaths))
    engine = ours(python, tries=2)
    engine.load(OLD)
    assert_all_answered_once(engine)
    assert len(started(python)) == deaths + 1
    engine.close()
    assert not any(map(alive, started(python)))


def test_a_server_of_ours_that_was_killed_between_calls_is_started_anew(python):
    engine = ours(python)
    engine.load(OLD)
    os.kill(started(python)[0], signal.SIGKILL)
    assert gone(started(python)[0])
    assert_all_answered_once(engine)
    assert len(started(python)) == 2
    engine.close()


def test_a_server_of_ours_that_hangs_is_ended_and_started_anew(python):
    engine = ours(python)
    assert isinstance(engine.server, ManagedServer)
    engine.server.shutdown_grace = 0.5
    engine.load(OLD)
    os.kill(started(python)[0], signal.SIGSTOP)
    assert_all_answered_once(engine)
    assert len(started(python)) == 2
    assert not alive(started(python)[0])
    engine.close()


def test_a_server_that_does_not_start_is_one_line_with_the_cause(python, monkeypatch):
    monkeypatch.setenv("FAKE_REFUSES", "no memory is left")
    engine = ours(python)
    with pytest.raises(EngineError) as error:
        engine.load(OLD)
    pattern = r"vllm has not started. It says: ValueError: no memory is left. The log is (\S+)\."
    found = re.fullmatch(pattern, str(error.value))
    assert found
    assert "Traceback" in Path(found[1]).read_text()


def test_an_interpreter_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(EngineError, match=r"has not started.*FileNotFoundError.*nowhere"):
        ours(str(tmp_path / "nowhere")).load(OLD)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_a_server_of_ours_ends_when_we_do_however_we_end(python, end, tmp_path):
    shared = tmp_path / "temporary" / "shared"
    shared.mkdir()
    lines = [
        "import time",
        "from pathlib import Path",
        "from grupo.inference.server_process import Ours",
        f"command = [{python!r}, '--port', '{{port}}']",
        f"server = ManagedServer(command, {{}}, Path({str(shared)!r}), port=0, startup_timeout=60.0)",
        "server.ready()",
        "print('ready', flush=True)",
        f"time.sleep({0 if end is None else 60})",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    (process,) = started(python)
    if end is not None:
        assert alive(process)
        child.send_signal(end)
    child.communicate()
    assert gone(process)
    if end in (signal.SIGKILL, signal.SIGTERM):  # nobody else is left who could remove it
        assert soon(lambda: left_over(python) == [])


def test_a_port_that_is_taken_is_refused(python):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port: {port} is taken"):
            ours(python, port=port).load(OLD)


def test_options_reach_the_server_and_may_hold_braces(python):
    spec = Vllm(python=python, server_options=("--compilation-config", json.dumps({"level": 0})))
    assert spec.command("m", 64)[-2:] == ("--compilation-config", '{"level": 0}')
    engine = spec.build("m", BOUNDS)
    engine.load(OLD)
    engine.close()
