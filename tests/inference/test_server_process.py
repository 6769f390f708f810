"""Managed servers start when needed and end with the process that started them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import server_command
from grupo.inference.vllm_engine import VllmEngine
from grupo.inference.vllm_processes import StartedServer
from grupo.util.errors import ConfigError
from tests.helpers import fake_vllm
from tests.helpers.fast_cases import fast_cases
from tests.helpers.processes import is_running, wait_until
from tests.helpers.vllm_fixtures import STOP_CONDITIONS, WEIGHTS, assert_all_answered_once


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An interpreter that runs the fake server; the file `pids` beside it lists its processes."""
    (tmp_path / "pids").write_text("")
    monkeypatch.setenv("FAKE_PIDS", str(tmp_path / "pids"))
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_vllm.__file__}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def server_pids(python: str) -> list[int]:
    """Process ids of the servers that were started."""
    return [int(line) for line in Path(python).with_name("pids").read_text().split()]


def remaining_files(python: str) -> list[str]:
    """Temporary files that were not removed."""
    return sorted(path.name for path in Path(python).with_name("temporary").iterdir())


def managed_engine(python: str, **options: Any) -> VllmEngine:
    defaults = {"request_timeout": 2.0, "max_concurrency": 8}
    return VllmEngine(Vllm(python=python, **(defaults | options)), "m", STOP_CONDITIONS)


def test_server_is_started_when_needed_and_ended_by_close(python):
    engine = managed_engine(python)
    assert server_pids(python) == []
    engine.load(WEIGHTS)
    assert_all_answered_once(engine)
    (process,) = server_pids(python)
    assert is_running(process)
    engine.close()
    assert not is_running(process)
    assert remaining_files(python) == []


@pytest.mark.parametrize("deaths", fast_cases(1, [1, 3]))
def test_server_that_dies_is_restarted(python, deaths, monkeypatch):
    monkeypatch.setenv("FAKE_DEATHS", str(deaths))
    engine = managed_engine(python, max_failures=2)
    engine.load(WEIGHTS)
    assert_all_answered_once(engine)
    assert len(server_pids(python)) == deaths + 1
    engine.close()
    assert not any(map(is_running, server_pids(python)))


@pytest.mark.slow
def test_server_killed_between_calls_is_restarted(python):
    engine = managed_engine(python)
    engine.load(WEIGHTS)
    os.kill(server_pids(python)[0], signal.SIGKILL)
    wait_until(lambda: not is_running(server_pids(python)[0]), 10)
    assert_all_answered_once(engine)
    assert len(server_pids(python)) == 2
    engine.close()


@pytest.mark.slow
def test_server_that_hangs_is_killed_and_restarted(python):
    engine = managed_engine(python)
    process = engine.pool.servers[0].process
    assert isinstance(process, StartedServer)
    process.managed.shutdown_grace = 0.5
    engine.load(WEIGHTS)
    os.kill(server_pids(python)[0], signal.SIGSTOP)
    assert_all_answered_once(engine)
    assert len(server_pids(python)) == 2
    assert not is_running(server_pids(python)[0])
    engine.close()


def test_server_that_does_not_start_raises_an_error_with_its_cause(python, monkeypatch):
    monkeypatch.setenv("FAKE_STARTUP_ERROR", "no memory is left")
    engine = managed_engine(python)
    with pytest.raises(EngineError) as error:
        engine.load(WEIGHTS)
    pattern = (
        r"vllm has not started. First error: ValueError: no memory is left. The log is (\S+)\."
    )
    match = re.fullmatch(pattern, str(error.value))
    assert match
    assert "Traceback" in Path(match[1]).read_text()


def test_missing_interpreter_raises_one_error(tmp_path):
    with pytest.raises(EngineError, match=r"has not started.*FileNotFoundError.*nowhere"):
        managed_engine(str(tmp_path / "nowhere")).load(WEIGHTS)


@pytest.mark.parametrize(
    "end", fast_cases(1, [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
)
def test_server_ends_with_its_parent_process(python, end, tmp_path):
    shared = tmp_path / "temporary" / "shared"
    shared.mkdir()
    lines = [
        "import time",
        "from pathlib import Path",
        "from grupo.inference.server_process import ManagedServer",
        f"command = [{python!r}, '--port', '{{port}}']",
        f"folder = Path({str(shared)!r})",
        "server = ManagedServer(command, {}, folder, port=0, startup_timeout=60.0)",
        "server.wait_ready()",
        "print('ready', flush=True)",
        f"time.sleep({0 if end is None else 60})",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    (process,) = server_pids(python)
    if end is not None:
        assert is_running(process)
        child.send_signal(end)
    child.communicate()
    wait_until(lambda: not is_running(process), 10)
    if end in (signal.SIGKILL, signal.SIGTERM):  # the killed parent could not remove the folder
        wait_until(lambda: remaining_files(python) == [], 10)


def test_port_in_use_is_rejected(python):
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port: {port} is in use"):
            managed_engine(python, port=port).load(WEIGHTS)


def test_server_options_may_contain_braces(python):
    spec = Vllm(python=python, server_options=("--compilation-config", json.dumps({"level": 0})))
    assert server_command(spec, "m", 64)[-2:] == ("--compilation-config", '{"level": 0}')
    engine = VllmEngine(spec, "m", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    engine.close()
