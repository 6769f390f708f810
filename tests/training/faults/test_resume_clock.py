"""A resumed run repeats the decisions that depend on the time of its steps."""

import json
from pathlib import Path

import pytest

from tests.helpers.run_outcomes import flip_bit, without_times

KILL = "step/logged:5"  # the last checkpoint is that of step 3


@pytest.fixture
def killed_run(training_process, tmp_path) -> Path:
    """A run with schedules of the time, killed two steps after its checkpoint."""
    run = tmp_path / "run"
    assert training_process("train", run, recipe="timed", kill=KILL).killed
    return run


def logged(run: Path) -> list[list]:
    """The metrics of the first five steps without times, and the bytes of their rollouts."""
    metrics = map(json.loads, (run / "metrics.jsonl").read_text().splitlines()[:5])
    lines = [*(run / "rollouts.jsonl").read_bytes().splitlines()]
    num_rollouts = sum(json.loads(line)["step"] <= 5 for line in lines)
    return [[without_times(line) for line in metrics], lines[:num_rollouts]]


@pytest.mark.slow
def test_a_resumed_run_repeats_schedules_that_follow_the_time(killed_run, training_process):
    before = logged(killed_run)
    assert len(before[0]) == 5
    result = training_process("resume", killed_run, kill=KILL)
    assert (result.killed, result.messages) == (True, [])
    assert logged(killed_run) == before


@pytest.mark.slow
def test_without_its_clock_a_resumed_run_differs(killed_run, training_process):
    before = logged(killed_run)
    (killed_run / "clock.jsonl").unlink()
    assert training_process("resume", killed_run, kill=KILL).killed
    assert logged(killed_run) != before


@pytest.mark.slow
def test_a_damaged_clock_is_reported(killed_run, training_process):
    flip_bit(killed_run / "clock.jsonl", -9)
    run = killed_run
    recipe = json.loads((run / "recipe.json").read_text())["recipe"]
    assert recipe["early_stopping"]["max_seconds"] == 60.0
    result = training_process("resume", run, limit=1)  # it ends at its first write
    assert result.messages[0].startswith("clock.jsonl, line 5 (step 5): its bytes are not those")
