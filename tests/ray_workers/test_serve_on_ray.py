"""`grupo serve --ray`: imitated servers on a local Ray cluster, which are started again."""

import os
import re
import select
import signal
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

from grupo.inference.serve import ServeOptions
from grupo.inference.server_process import is_healthy
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.ray_workers.server_host import options_from_json, options_to_json
from tests.helpers import fake_vllm
from tests.helpers.paths import CHILD_ENV
from tests.helpers.processes import is_running, wait_until
from tests.helpers.vllm_fixtures import STOP_CONDITIONS, WEIGHTS, assert_all_answered_once

SECONDS = 60


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"^PPid:\s(\d+)", status, re.MULTILINE)[0])


class RayServing:
    """`grupo serve --ray local` with two imitated servers."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        self.pids.write_text("")
        script = folder / "python"
        run_fake = f'exec "{sys.executable}" "{fake_vllm.__file__}" "$@"'
        script.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\n{run_fake}\n')
        script.chmod(0o755)
        options = ["--ray", "local", "--gpus", "0", "--data-parallel", "2", "--dtype", "float32"]
        folders = {"TMPDIR": str(folder), "RAY_TMPDIR": "/tmp"}  # Ray's sockets have short paths
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grupo", "serve", "m", "--python", str(script), *options],
            env={**os.environ, **CHILD_ENV, "FAKE_PIDS": str(self.pids), **folders},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.urls: tuple[str, ...] = ()

    def announced(self) -> tuple[str, ...]:
        """The addresses in the next line that begins with `Vllm`."""
        assert self.process.stdout
        while select.select([self.process.stdout], [], [], SECONDS)[0]:
            line = self.process.stdout.readline()
            if line.startswith("Vllm("):
                return literal_eval(re.findall(r"urls=(\(.*?\))", line)[0])
            assert line, self.process.communicate()
        raise AssertionError("no addresses")

    def server_pids(self) -> list[int]:
        return [int(line) for line in self.pids.read_text().split()]

    def num_running(self) -> int:
        return sum(map(is_running, self.server_pids()))


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[RayServing]:
    started = RayServing(tmp_path)
    try:
        started.urls = started.announced()
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def assert_answers(urls: tuple[str, ...]) -> None:
    engine = VllmEngine(Vllm(urls), "", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    assert_all_answered_once(engine)
    engine.close()


def test_servers_answer_and_end_with_the_command(serving, tmp_path):
    assert len(serving.urls) == 2
    assert_answers(serving.urls)
    serving.process.send_signal(signal.SIGTERM)
    serving.process.communicate(timeout=SECONDS)
    wait_until(lambda: serving.num_running() == 0, SECONDS)
    wait_until(lambda: not list(tmp_path.glob("grupo-serve-*")), SECONDS)


def test_a_server_that_is_killed_answers_again_at_its_address(serving):
    os.kill(serving.server_pids()[0], signal.SIGKILL)
    wait_until(lambda: len(serving.server_pids()) == 3, SECONDS)
    wait_until(lambda: all(map(is_healthy, serving.urls)), SECONDS)
    assert_answers(serving.urls)


def test_a_server_whose_actor_is_killed_answers_again_at_its_address(serving):
    guard = parent(serving.server_pids()[0])
    os.kill(parent(guard), signal.SIGKILL)
    wait_until(lambda: len(serving.server_pids()) == 3, SECONDS)
    wait_until(lambda: serving.num_running() == 2, SECONDS)
    wait_until(lambda: all(map(is_healthy, serving.urls)), SECONDS)
    assert_answers(serving.urls)


def test_servers_end_with_a_command_that_is_killed(serving):
    serving.process.kill()
    wait_until(lambda: serving.num_running() == 0, SECONDS)


def test_options_are_equal_after_the_way_to_an_actor():
    options = ServeOptions("m", data_parallel=2, more=("--max-num-seqs", "8"))
    assert options_from_json(options_to_json(options)) == options
