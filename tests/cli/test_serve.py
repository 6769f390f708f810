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

from grupo.cli import main
from grupo.inference import serve, served_process
from grupo.inference.serve import ServeOptions
from grupo.inference.served_process import HEALTH_INTERVAL, ServedProcess, ServerEndedError
from grupo.inference.server_process import is_healthy
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.util.errors import ConfigError
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


def start_serving(folder: Path) -> "tuple[subprocess.Popen[str], int]":
    """`grupo serve` with two imitated servers, and the port of the first one."""
    (folder / "pids").write_text("")
    script = folder / "python"
    run_fake = f'exec "{sys.executable}" "{fake_vllm.__file__}" "$@"'
    script.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\n{run_fake}\n')
    script.chmod(0o755)
    port = two_free_ports()
    options = ["--port", str(port), "--data-parallel", "2", "--dtype", "float32"]
    variables = {"FAKE_PIDS": str(folder / "pids"), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "grupo", "serve", "m", "--python", str(script), *options],
        env={**os.environ, **CHILD_ENV, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, port


class Serving:
    """`grupo serve` with two imitated servers."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        self.process, port = start_serving(folder)
        self.urls = tuple(f"http://127.0.0.1:{port + i}" for i in range(2))
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_server_that_ends_is_started_again_while_the_other_one_goes_on(serving):
    first, second = serving.server_pids()
    for restarts in (1, 2):
        time.sleep(HEALTH_INTERVAL + 0.5)  # until `grupo serve` knows that it answers
        os.kill(serving.server_pids()[-1] if restarts == 2 else first, signal.SIGKILL)
        assert becomes_true(lambda n=restarts: len(serving.server_pids()) == 2 + n)
        assert becomes_true(lambda: all(map(is_healthy, serving.urls)))
    assert Path(f"/proc/{second}").exists()
    assert serving.process.poll() is None
    serving.process.send_signal(signal.SIGTERM)
    _, err = serving.process.communicate(timeout=20)
    assert err.count("has ended. It was started again, ") == 2
    assert "1 of at most 5 times within 1800 s" in err
    assert becomes_true(serving.have_ended)


@pytest.mark.slow
def test_all_servers_end_if_one_ends_before_it_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_STARTUP_ERROR", "no memory")
    process = start_serving(tmp_path)[0]
    _, err = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "grupo: The server at http://127.0.0.1:" in err
    assert "has ended before it answered." in err


def served(folder: Path) -> ServedProcess:
    """A server that answers /health once and ends."""
    return ServedProcess(("127.0.0.1", 1), {}, [sys.executable, "-c", ""], folder)


def end_after_an_answer(server: ServedProcess) -> str:
    server.has_answered = True
    assert becomes_true(lambda: server.guard.poll() is not None)
    return server.keep_running()


def test_a_server_that_ends_too_often_is_not_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(served_process, "MAX_RESTARTS", 2)
    server = served(tmp_path)
    assert "1 of at most 2 times" in end_after_an_answer(server)
    assert "2 of at most 2 times" in end_after_an_answer(server)
    message = r"at http://127.0.0.1:1 has ended 3 times within 1800 s"
    with pytest.raises(ServerEndedError, match=message):
        end_after_an_answer(server)
    server.end()


def test_restarts_of_long_ago_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(served_process, "MAX_RESTARTS", 1)
    server = served(tmp_path)
    end_after_an_answer(server)
    server.restarts[0] -= served_process.RESTART_WINDOW
    assert "1 of at most 1 times" in end_after_an_answer(server)
    server.end()


def test_a_server_that_stops_answering_is_ended_and_started_again(tmp_path):
    sleeping = ServedProcess(
        ("127.0.0.1", 1), {}, [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path
    )
    sleeping.has_answered = True
    sleeping.last_answer = time.monotonic() - served_process.SILENCE_LIMIT + 5
    assert sleeping.keep_running() == ""
    first = sleeping.guard
    sleeping.last_answer = time.monotonic() - served_process.SILENCE_LIMIT
    assert "1 of at most 5 times" in sleeping.keep_running()
    assert first.poll() is not None
    assert sleeping.keep_running() == ""  # the new one gets time to start
    sleeping.end()


@pytest.mark.slow
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


def test_a_run_is_refused_without_openai(grupo, tmp_path):
    run = tmp_path / "a run"
    run.mkdir()
    (run / "recipe.json").write_text("{}")
    code, out, err = grupo("serve", str(run))
    assert (code, out) == (2, "")
    assert f"`grupo export '{run}' FOLDER`. --openai serves runs, without vLLM." in " ".join(
        err.split()
    )


def test_options_of_vllm_are_refused_with_openai(capsys):
    with pytest.raises(SystemExit) as end:
        main(["serve", "model", "--openai", "--lora-rank", "4"])
    assert end.value.code == 2
    assert "lora-rank: of vLLM only. Leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "problem"),
    [("exit 1", "it has no vllm"), ("exec sleep 100", "it gave no answer in 0.5 s")],
)
def test_an_interpreter_that_has_no_vllm_or_gives_no_answer_is_refused(
    tmp_path, monkeypatch, script, problem
):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(serve, "ANSWER_SECONDS", 0.5)
    with pytest.raises(ConfigError, match=f"^python: '{python}': {problem}. Allowed:"):
        serve.check_interpreter(str(python))
