"""`grupo serve`: the commands of vLLM servers, and servers that end together."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grupo.inference.serve import ServeOptions
from grupo.inference.server_process import is_healthy
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from tests.helpers import fake_vllm
from tests.helpers.paths import CHILD_ENV
from tests.helpers.vllm_fixtures import STOP_CONDITIONS, WEIGHTS, assert_all_answered_once


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def two_free_ports() -> int:
    """A free port that is followed by another one."""
    for port in range(20000 + os.getpid() % 20000, 60000, 2):
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise AssertionError("no free ports")


class Serving:
    """`grupo serve` with two imitated servers."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        self.pids.write_text("")
        script = folder / "python"
        run_fake = f'exec "{sys.executable}" "{fake_vllm.__file__}" "$@"'
        script.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\n{run_fake}\n')
        script.chmod(0o755)
        port = two_free_ports()
        self.urls = tuple(f"http://127.0.0.1:{port + i}" for i in range(2))
        options = ["--port", str(port), "--data-parallel", "2", "--dtype", "float32"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grupo", "serve", "m", "--python", str(script), *options],
            env={**os.environ, **CHILD_ENV, "FAKE_PIDS": str(self.pids), "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert becomes_true(lambda: all(map(is_healthy, self.urls)))
        assert becomes_true(lambda: len(self.server_pids()) == 2)

    def server_pids(self) -> list[int]:
        return [int(line) for line in self.pids.read_text().split()]

    def have_ended(self) -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in self.server_pids())


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    started = Serving(tmp_path)
    yield started
    started.process.kill()
    started.process.communicate()


def test_commands_are_printed_and_servers_answer_until_they_are_ended(serving, tmp_path):
    engine = VllmEngine(Vllm(serving.urls), "", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    assert_all_answered_once(engine)
    engine.close()
    serving.process.send_signal(signal.SIGTERM)
    out, _ = serving.process.communicate(timeout=20)
    assert out.count("vllm.entrypoints.openai.api_server --model m --host 127.0.0.1") == 2
    assert becomes_true(serving.have_ended)
    assert not list(tmp_path.glob("grupo-serve-*"))


def test_all_servers_end_when_one_does(serving):
    os.kill(serving.server_pids()[0], signal.SIGKILL)
    _, err = serving.process.communicate(timeout=20)
    assert serving.process.returncode == 3
    assert "grupo: The server at http://127.0.0.1:" in err
    assert "has ended." in err
    assert becomes_true(serving.have_ended)


def test_servers_end_with_a_command_that_is_killed(serving):
    serving.process.kill()
    assert becomes_true(serving.have_ended)


def test_a_server_gets_what_the_engine_needs():
    ((environment, command),) = ServeOptions("m", more=("--max-num-seqs", "8")).commands("w")
    assert environment["PYTHONPATH"] == "w"
    assert environment["VLLM_SERVER_DEV_MODE"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in environment
    line = shlex.join(command)
    assert line.endswith("--tensor-parallel-size 1 --max-num-seqs 8")
    for option in (
        "--host 127.0.0.1 --port 8000 --dtype bfloat16",
        "--worker-extension-cls vllm_worker.WeightLoaderExtension",
        "--logprobs-mode processed_logprobs",
        "--load-format safetensors",
    ):
        assert option in line


@pytest.mark.parametrize(
    ("visible", "expected"), [("", ["0,1", "2,3"]), ("4,5,6,7", ["4,5", "6,7"])]
)
def test_each_of_several_servers_has_gpus_of_its_own(monkeypatch, visible, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    commands = ServeOptions("m", tensor_parallel=2, data_parallel=2).commands("w")
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment, _ in commands] == expected


def test_servers_that_others_can_reach_are_warned_of():
    assert ServeOptions("m").warning == ""
    assert "let only the machines of the run" in ServeOptions("m", bind="0.0.0.0").warning


def test_a_dry_run_prints_the_command_only(grupo):
    code, out, err = grupo("serve", "model", "--dry-run", "--", "--max-num-seqs", "8")
    assert (code, err) == (0, "")
    assert out.endswith("--tensor-parallel-size 1 --max-num-seqs 8\n")
