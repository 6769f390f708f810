"""Commands that several processes run: `--ranks`, torchrun, and what they refuse."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from grupo.distributed.agreement import check_same_values
from grupo.distributed.launch import check_num_ranks
from grupo.distributed.torch_ranks import TorchRanks
from grupo.testing.thread_ranks import run_ranks
from grupo.util.errors import ConfigError
from tests.helpers.paths import CHILD_ENV
from tests.helpers.processes import is_running, wait_until
from tests.helpers.user_code import RECIPE
from tests.helpers.user_inputs import tiny_model, write_tasks

REWARDS = """
import os
import signal
from pathlib import Path

KILLED = Path("killed")


def digits(task, rollout):
    if os.environ.get("RANK") == os.environ.get("KILLED_RANK", "none") and not KILLED.exists():
        KILLED.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sum(map(str.isdigit, rollout.text)) / max(1, len(rollout.text))


def nothing(task, rollout):
    return float("nan")
"""
VARIABLES = {
    "RANK": "0",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launch")
    (folder / "recipe.py").write_text(RECIPE)
    (folder / "rewards.py").write_text(REWARDS)
    tiny_model(folder / "model")
    write_tasks(folder)
    return folder


def execute(folder, *arguments, **variables):
    environment = {**os.environ, **CHILD_ENV, "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def texts(run):
    lines = (run / "rollouts.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.mark.slow
def test_two_ranks_print_once_and_generate_what_one_process_generates(folder):
    outputs = {}
    for ranks in (1, 2):
        arguments = ("train", "recipe.py:RECIPE", "--run", f"run{ranks}", "--ranks", str(ranks))
        code, outputs[ranks], err = execute(folder, "grupo", *arguments)
        assert code == 0, err
        assert "Traceback" not in err
    assert outputs[2].count("run2") == outputs[1].count("run1") > 0
    assert texts(folder / "run2") == texts(folder / "run1")
    assert json.loads((folder / "run2" / "summary.json").read_text())["steps"] == 2


def test_more_ranks_than_cores_are_refused_before_a_process_starts(folder):
    most = max(2, len(os.sched_getaffinity(0)))
    for ranks in (0, most + 1, 10**18):
        with pytest.raises(ConfigError, match=rf"ranks: {ranks}\. Allowed: 1 to {most}, "):
            check_num_ranks(ranks, oversubscribe=False)
    check_num_ranks(most, oversubscribe=False)
    check_num_ranks(most + 1, oversubscribe=True)
    train = ("grupo", "train", "recipe.py:RECIPE", "--run", "typo")
    code, _, err = execute(folder, *train, "--ranks", "4000")
    assert code == 2
    assert err.startswith("grupo: ranks: 4000. Allowed: 1 to")
    assert not (folder / "typo").exists()


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ranks_end_when_their_launcher_is_killed(folder, ended_by, tmp_path):
    run = tmp_path / "run"
    command = ("grupo", "train", "recipe.py:RECIPE", "--run", str(run), "--steps", "100000")
    launcher = subprocess.Popen(
        [sys.executable, "-m", *command, "--ranks", "2"],
        cwd=folder,
        env={**os.environ, **CHILD_ENV, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: (run / "metrics.jsonl").exists(), 120)
        ranks = [place["process"] for place in json.loads((run / "ranks.json").read_text())]
        assert len(ranks) == 2
        launcher.send_signal(ended_by)
        wait_until(lambda: not any(is_running(process) for process in ranks), 30)
    finally:
        launcher.kill()
        launcher.wait()


@pytest.mark.slow
def test_torchrun_restarts_and_the_run_goes_on(folder):
    launcher = ("torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "3")
    train = (
        "-m",
        "--",
        "grupo",
        "train",
        "recipe.py:RECIPE",
        "--run",
        "restarted",
        "--resume-if-exists",
    )
    variables = {"KILLED_RANK": "1", "GRUPO_LOST_AFTER": "5"}
    code, _, err = execute(folder, *launcher, *train, **variables)
    assert code == 0, err
    assert (folder / "killed").exists()
    execute(folder, "grupo", "train", "recipe.py:RECIPE", "--run", "once")
    assert texts(folder / "restarted") == texts(folder / "once")


@pytest.mark.slow
def test_a_bad_input_is_refused_once(folder):
    code, _, err = execute(
        folder, "grupo", "train", "recipe.py:RECIPE", "--ranks", "2", "--steps", "0"
    )
    assert code == 2
    assert err.count("grupo: ") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"RANK": ""}, "RANK: not set, but WORLD_SIZE is '2'. Allowed: all of RANK, WORLD_SIZE,"),
        ({"RANK": "two"}, "RANK: 'two'. Allowed: a whole number, 0 to 1."),
        ({"RANK": "2"}, "RANK: '2'. Allowed: a whole number, 0 to 1."),
        ({"WORLD_SIZE": "-2"}, "WORLD_SIZE: '-2'. Allowed: a whole number, 1 or more."),
        ({"GRUPO_PATIENCE": "0"}, "GRUPO_PATIENCE: '0'. Allowed: a whole number, 1 or more."),
        ({"GRUPO_LOST_AFTER": "5s"}, "GRUPO_LOST_AFTER: '5s'. Allowed: a whole number"),
    ],
)
def test_variables_of_a_launcher_are_checked(changes, message):
    with pytest.raises(ConfigError) as error:
        TorchRanks({**VARIABLES, **changes})
    assert message in str(error.value)


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        variables = {**VARIABLES, "MASTER_PORT": port}
        code, _, err = execute(folder, "grupo", "train", "recipe.py:RECIPE", **variables)
    assert code == 2
    assert f"grupo: MASTER_PORT: {port}, which another program uses." in err


def test_another_recipe_on_a_rank_is_refused_on_all():
    def message(ranks):
        try:
            check_same_values(ranks, {"the recipe": "abc" if ranks.rank < 2 else "def"})
        except ConfigError as error:
            return str(error)
        return ""

    expected = "ranks: rank 2 has the recipe def, and rank 0 has abc. Allowed: the same on all"
    assert all(expected in text for text in run_ranks(3, message))
