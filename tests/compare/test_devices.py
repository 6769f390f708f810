"""Assignment of runs to simulated GPUs: one device each, never shared."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.compare import run_comparison, scheduler
from grupo.compare.experiment import run_specs
from grupo.compare.run_status import status_of
from grupo.compare.scheduler import NullQueueCallback, Resources, train_all, visible_gpus
from grupo.envs import RewardTerm, SingleTurn
from grupo.util.errors import ConfigError

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
FAKE_WORKER = """
import os
import subprocess
import sys
import time

with open(os.environ["SEEN"], "a") as file:
    file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {sys.argv[-1]}\\n")
time.sleep(0.1)
if "seed-1" in sys.argv[-1]:  # crashes and leaves a child process
    child = subprocess.Popen(["sleep", "300"])
    with open(os.environ["LEFT"], "a") as file:
        file.write(f"{child.pid}\\n")
    sys.exit(1)
"""


@pytest.fixture
def fake_gpus(monkeypatch, tmp_path):
    """Makes grupo see GPUs with these names."""

    def make(*names: str) -> None:
        monkeypatch.setattr("torch.cuda.device_count", lambda: len(names))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(names))
        monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
        monkeypatch.setenv("LEFT", str(tmp_path / "left"))

    return make


class EventRecorder(NullQueueCallback):
    """Records starts and ends of runs in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def on_run_start(self, run_spec) -> None:
        self.events.append(("started", str(run_spec.folder)))

    def on_run_end(self, run_status) -> None:
        self.events.append(("ended", str(run_status.run_spec.folder)))


def devices(tmp_path: Path) -> dict[str, str]:
    """The device of each run folder; fails if a run saw several."""
    lines = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    seen: dict[str, set[str]] = {}
    for device, folder in lines:
        seen.setdefault(folder, set()).add(device)
    assert all(len(names) == 1 for names in seen.values())
    return {folder: names.pop() for folder, names in seen.items()}


def max_devices_in_use(events: list[tuple[str, str]], device: dict[str, str]) -> int:
    """The maximum number of devices in use at once; fails if two runs share one."""
    used, largest = set[str](), 0
    for event, folder in events:
        if event == "ended":
            used.remove(device[folder])
            continue
        assert device[folder] not in used
        used.add(device[folder])
        largest = max(largest, len(used))
    assert not used
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [("0", "GPU-7f"), ("3",), ("0", "1", "2", "3", "4", "5", "6")])
def test_each_device_is_used_by_one_run_at_a_time(
    comparison, fake_gpus, gpus, tmp_path, monkeypatch
):
    fake_gpus(*gpus)
    (tmp_path / "worker.py").write_text(FAKE_WORKER)
    monkeypatch.setattr(scheduler, "WORKER_ARGUMENTS", (str(tmp_path / "worker.py"),))
    runs, recorder = run_specs(replace(comparison, seeds=3), tmp_path / "out"), EventRecorder()
    train_all(runs, Resources.detect(), recorder)
    device = devices(tmp_path)
    assert device.keys() == {str(run.folder) for run in runs}
    assert set(device.values()) == set(gpus[: len(runs)])
    assert max_devices_in_use(recorder.events, device) == min(len(gpus), len(runs))
    assert [status_of(run).status for run in runs].count("crashed") == 2  # seed 1 of both recipes


@pytest.mark.slow
def test_children_of_a_crashed_run_are_killed(comparison, fake_gpus, tmp_path, monkeypatch):
    fake_gpus("0")
    (tmp_path / "worker.py").write_text(FAKE_WORKER)
    monkeypatch.setattr(scheduler, "WORKER_ARGUMENTS", (str(tmp_path / "worker.py"),))
    train_all(run_specs(comparison, tmp_path / "out"), Resources.detect())
    children = [int(line) for line in (tmp_path / "left").read_text().splitlines()]
    assert len(children) == 2
    deadline = time.monotonic() + 10
    while any(map(is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, children))


def is_alive(process: int) -> bool:
    """True if the process runs; zombies count as ended."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_training_runs_see_one_device_each_and_a_crash_frees_it(comparison, fake_gpus, tmp_path):
    fake_gpus("0", "5")
    (tmp_path / "rewards.py").write_text(REWARDS)
    env = SingleTurn((RewardTerm("device", f"{tmp_path / 'rewards.py'}:device"),))
    recipe = comparison.recipes["grpo"].replace(env=env, eval_tasks=0)
    recipes = {"failing": recipe, "first": recipe, "second": recipe}
    recorder = EventRecorder()
    compared = replace(comparison, recipes=recipes, seeds=1, metric="reward")
    result = run_comparison(compared, tmp_path / "out", queue_callback=lambda _: recorder)
    assert [status.status for status in result.run_statuses] == [
        "crashed",
        "finished",
        "finished",
    ]
    device = devices(tmp_path)
    assert sorted(device.values()) in (["0", "0", "5"], ["0", "5", "5"])
    assert max_devices_in_use(recorder.events, device) == 2


def test_more_workers_than_devices_are_rejected(comparison, fake_gpus, tmp_path):
    fake_gpus("0", "1")
    allowed = r"workers: 3\. Allowed: up to 2, each on a GPU of its own\."
    with pytest.raises(ConfigError, match=allowed):
        run_comparison(comparison, tmp_path / "out", workers=3)
    assert not (tmp_path / "out").exists()
    assert Resources.detect(1).workers == 1


def test_visible_gpus_follow_the_environment(fake_gpus, monkeypatch):
    fake_gpus("2", " MIG-1")
    assert visible_gpus() == ("2", "MIG-1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus() == ("0", "1")
    assert Resources.detect().workers == 2


def test_without_gpus_the_environment_names_no_device(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    resources = Resources.detect(threads=2)
    assert (resources.gpus, resources.workers) == ((), max(1, len(os.sched_getaffinity(0)) // 2))
    assert "CUDA_VISIBLE_DEVICES" not in resources.environment(0)
    assert resources.environment(0)["OMP_NUM_THREADS"] == "2"
