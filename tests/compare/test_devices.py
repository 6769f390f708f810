"""Cells on GPUs, of which there are none here: who is told of which, and never two of the same."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import run_comparison, scheduler
from grupo.compare.experiment import run_specs
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback, Resources, train_all, visible_gpus
from grupo.core.errors import ConfigError
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import ImportedReward

REWARDS = """
import os
import sys

def device(task, rollout):
    with open(os.environ["SEEN"], "a") as file:
        file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {sys.argv[-1]}\\n")
    if "failing" in sys.argv[-1]:
        os._exit(7)
    return float(len(rollout.text))
"""
BRIEF = """
import os
import subprocess
import sys
import time

with open(os.environ["SEEN"], "a") as file:
    file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {sys.argv[-1]}\\n")
time.sleep(0.1)
if "seed-1" in sys.argv[-1]:  # it crashes, and leaves behind what it started
    left = subprocess.Popen(["sleep", "300"])
    with open(os.environ["LEFT"], "a") as file:
        file.write(f"{left.pid}\\n")
    sys.exit(1)
"""


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Lets there be GPUs: as many as are named, which no process that is started can use."""

    def make(*names: str) -> None:
        monkeypatch.setattr("torch.cuda.device_count", lambda: len(names))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(names))
        monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
        monkeypatch.setenv("LEFT", str(tmp_path / "left"))

    return make


class Watching(NullQueueCallback):
    """Notes who starts and who ends, in that order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def on_run_start(self, cell) -> None:
        self.events.append(("started", str(cell.folder)))

    def on_run_end(self, outcome) -> None:
        self.events.append(("ended", str(outcome.run_spec.folder)))


def devices(tmp_path: Path) -> dict[str, str]:
    """Which devices each cell saw; of one that saw several, the test has failed."""
    lines = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    seen = {folder: {device for device, of in lines if of == folder} for _, folder in lines}
    assert all(len(some) == 1 for some in seen.values())
    return {folder: some.pop() for folder, some in seen.items()}


def most_at_once(events: list[tuple[str, str]], device: dict[str, str]) -> int:
    """How many devices were in use at the same time; none of them by two."""
    used, most = set[str](), 0
    for what, folder in events:
        if what == "ended":
            used.remove(device[folder])
            continue
        assert device[folder] not in used
        used.add(device[folder])
        most = max(most, len(used))
    assert not used
    return most


@pytest.mark.parametrize("gpus", [("0", "GPU-7f"), ("3",), ("0", "1", "2", "3", "4", "5", "6")])
def test_more_and_fewer_devices_than_cells_are_each_used_by_one_at_a_time(
    comparison, pretend, gpus, tmp_path, monkeypatch
):
    pretend(*gpus)
    (tmp_path / "brief.py").write_text(BRIEF)
    monkeypatch.setattr(scheduler, "PROGRAM", (str(tmp_path / "brief.py"),))
    every, watching = run_specs(replace(comparison, seeds=3), tmp_path / "out"), Watching()
    train_all(every, Resources.detect(), watching)
    device = devices(tmp_path)
    assert device.keys() == {str(cell.folder) for cell in every}
    assert set(device.values()) == set(gpus[: len(every)])
    assert most_at_once(watching.events, device) == min(len(gpus), len(every))
    assert [status_of(cell).status for cell in every].count("crashed") == 2  # seed 1 of both


def test_what_a_crashed_cell_started_does_not_go_on_using_its_device(
    comparison, pretend, tmp_path, monkeypatch
):
    pretend("0")
    (tmp_path / "brief.py").write_text(BRIEF)
    monkeypatch.setattr(scheduler, "PROGRAM", (str(tmp_path / "brief.py"),))
    train_all(run_specs(comparison, tmp_path / "out"), Resources.detect())
    left = [int(line) for line in (tmp_path / "left").read_text().splitlines()]
    assert len(left) == 2
    until = time.monotonic() + 10
    while any(map(alive, left)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, left))


def alive(process: int) -> bool:
    """Does it run? One that has ended and that nobody has asked for yet does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_cells_that_train_see_one_device_each_and_a_crash_gives_it_back(
    comparison, pretend, tmp_path
):
    pretend("0", "5")
    (tmp_path / "rewards.py").write_text(REWARDS)
    world = SingleTurn((RewardTerm("device", ImportedReward(f"{tmp_path / 'rewards.py'}:device")),))
    recipe = comparison.recipes["grpo"].replace(env=world, eval_tasks=0)
    recipes = {"failing": recipe, "well": recipe, "again": recipe}
    one, watching = replace(comparison, recipes=recipes, seeds=1, metric="reward"), Watching()
    result = run_comparison(one, tmp_path / "out", queue_callback=lambda _: watching)
    assert [outcome.status for outcome in result.run_statuses] == [
        "crashed",
        "finished",
        "finished",
    ]
    device = devices(tmp_path)
    assert sorted(device.values()) in (["0", "0", "5"], ["0", "5", "5"])
    assert most_at_once(watching.events, device) == 2


def test_more_cells_at_a_time_than_devices_are_refused(comparison, pretend, tmp_path):
    pretend("0", "1")
    allowed = r"workers: 3\. Allowed: up to 2, each on a GPU of its own\."
    with pytest.raises(ConfigError, match=allowed):
        run_comparison(comparison, tmp_path / "out", workers=3)
    assert not (tmp_path / "out").exists()
    assert Resources.detect(1).workers == 1


def test_the_devices_are_those_that_the_environment_names_or_all(pretend, monkeypatch):
    pretend("2", " MIG-1")
    assert visible_gpus() == ("2", "MIG-1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus() == ("0", "1")
    assert Resources.detect().workers == 2


def test_without_devices_cells_are_told_of_none(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine = Resources.detect(threads=2)
    assert (machine.gpus, machine.workers) == ((), max(1, len(os.sched_getaffinity(0)) // 2))
    assert "CUDA_VISIBLE_DEVICES" not in machine.environment(0)
    assert machine.environment(0)["OMP_NUM_THREADS"] == "2"
