"""A run killed at any kill point or time and resumed equals the uninterrupted run bit for bit."""

import os
import signal
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from grupo.storage import fault_injection
from tests.helpers.fast_cases import fast_cases
from tests.helpers.paths import ROOT
from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.training_processes import TrainingProcess
from tests.helpers.training_recipes import CHANGES

NAMES = (*fault_injection.BEGIN_POINTS, *fault_injection.STEP_POINTS, *fault_injection.SAVE_POINTS)
ONCE = {
    *fault_injection.BEGIN_POINTS,
    "run/begin",
    *(name for name in fault_injection.STEP_POINTS if name.startswith("run/summary/")),
    "run/ended",
    "save/removing",
}
OFTEN = tuple(name for name in NAMES if name not in ONCE)
CONFIGURATIONS = [name for name in CHANGES if name not in ("grpo", "long", "other seed")]
FAST_CONFIGURATIONS = ("async",)
slow = pytest.mark.slow


def nth(training_process: TrainingProcess, recipe: str, name: str, which: str) -> str:
    """The kill point with a count: the first, a middle or the last time that it is passed."""
    count = training_process.uninterrupted(recipe).points.count(name)
    numbers = {"first": 1, "middle": (count + 1) // 2, "last": count}
    return f"{name}:{numbers[which]}"


def test_a_run_passes_every_kill_point(training_process):
    counts = Counter(training_process.uninterrupted("grpo").points)
    assert set(counts) == set(NAMES)
    assert {name for name, count in counts.items() if count == 1} == ONCE
    assert min(counts[name] for name in OFTEN) >= 3


@pytest.mark.parametrize(
    ("name", "which"),
    fast_cases(
        [("run/begin", "first"), ("step/saved", "middle")],
        [
            *((name, "first") for name in NAMES if name in ONCE),
            *((name, which) for name in OFTEN for which in ("first", "middle", "last")),
        ],
    ),
)
def test_a_run_killed_at_a_point_ends_with_the_same_bits(name, which, training_process, tmp_path):
    assert_same_outcome(
        training_process, tmp_path / "run", "grpo", nth(training_process, "grpo", name, which)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", fast_cases(1, fault_injection.EMA_POINTS))
def test_a_run_with_averaged_weights_killed_at_a_point_ends_with_the_same_bits(
    name, training_process, tmp_path
):
    kill = nth(training_process, "ema", name, "middle")
    assert_same_outcome(training_process, tmp_path / "run", "ema", kill)


@pytest.mark.slow
@pytest.mark.parametrize("name", fast_cases(1, fault_injection.REPLAY_BUFFER_POINTS))
@pytest.mark.parametrize("which", fast_cases(["middle"], ["first", "middle", "last"]))
def test_a_run_with_a_pool_killed_at_a_point_ends_with_the_same_bits(
    name, which, training_process, tmp_path
):
    kill = nth(training_process, "replay_buffer", name, which)
    assert_same_outcome(training_process, tmp_path / "run", "replay_buffer", kill)
    assert list((tmp_path / "run" / "replay_buffer").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", fast_cases(1, fault_injection.MEDIA_POINTS))
@pytest.mark.parametrize("which", fast_cases(1, ["first", "last"]))
def test_a_run_with_pictures_killed_at_a_point_ends_with_the_same_bits(
    name, which, training_process, tmp_path
):
    kill = nth(training_process, "pictures", name, which)
    assert_same_outcome(training_process, tmp_path / "run", "pictures", kill)
    assert list((tmp_path / "run" / "media").iterdir())


@pytest.mark.parametrize("recipe", fast_cases(FAST_CONFIGURATIONS, CONFIGURATIONS))
def test_every_configuration_resumes_with_the_same_bits(recipe, training_process, tmp_path):
    last = training_process.uninterrupted(recipe).points.count("step/collated") or 1
    point = f"step/generated:{max(1, last - 1)}"
    assert_same_outcome(training_process, tmp_path / "run", recipe, point)


@slow
@pytest.mark.parametrize("name", [name for name in OFTEN if name.startswith(("step/", "run/"))])
@pytest.mark.parametrize("recipe", CONFIGURATIONS)
def test_every_configuration_resumes_from_every_point(recipe, name, training_process, tmp_path):
    if name not in training_process.uninterrupted(recipe).points:
        pytest.skip("this run does not pass the point")
    assert_same_outcome(
        training_process, tmp_path / "run", recipe, nth(training_process, recipe, name, "last")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [
        ("step/recorded:3", "resume/locked:1", "resume/cut/metrics:1", "resume/cut/rollouts:1"),
        ("step/logging:1", "resume/cut/metrics:1", "step/updated:1", "step/logged:2"),
        ("save/renamed:1", "save/renamed:1", "save/renamed:1", "save/latest/opened:1"),
        ("save/removing:1", "run/begin:1", "run/summary/written:1", "run/ended:1"),
        ("begin/folder:1", "begin/recipe/synced:1", "begin/recipe/renamed:1", "run/begin:1"),
    ],
)
def test_a_resumed_run_can_be_killed_again(kills, training_process, tmp_path):
    assert_same_outcome(training_process, tmp_path / "run", "grpo", *kills)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=slow) for seed in range(1, 11))])
def test_a_run_killed_ten_times_at_random_ends_with_the_same_bits(seed, training_process, tmp_path):
    rng, seconds = Random(seed), training_process.uninterrupted("long").seconds
    moments = [0.05, *(rng.uniform(0.05, 0.5) for _ in range(9))]
    killed = [
        training_process.resume_or_train(tmp_path / "run", "long", after=x * seconds).killed
        for x in moments
    ]
    assert killed[0]  # the run cannot have ended by then
    assert_same_outcome(training_process, tmp_path / "run", "long")


@pytest.mark.slow
@pytest.mark.parametrize("by", fast_cases(1, [signal.SIGTERM, signal.SIGINT]))
def test_a_run_stopped_by_a_signal_resumes_with_the_same_bits(by, training_process, tmp_path):
    """The signal is sent after the first step; Python may handle it some steps later."""
    logged = str(tmp_path / "run" / "metrics.jsonl")
    result = training_process.resume_or_train(tmp_path / "run", "long", after=0, once=logged, by=by)
    assert result.signal == by or result.error in ("KeyboardInterrupt: ", "")
    assert_same_outcome(training_process, tmp_path / "run", "long")


@pytest.mark.slow
def test_a_run_resumed_in_other_processes_ends_with_the_same_bits(training_process, tmp_path):
    """Started in one process and resumed in two others, whose sets have another order."""
    run = tmp_path / "run"
    assert training_process.resume_or_train(run, "kl", kill="step/begin:1").killed
    for hashes, kill, code in (("1", "save/committed:1", -signal.SIGKILL), ("2", "", 0)):
        variables = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hashes, "GRUPO_KILL_AT": kill}
        process = subprocess.run(
            [sys.executable, "-m", "grupo", "resume", run],
            cwd=ROOT,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (process.returncode, process.stderr) == (code, "")
    assert differences(training_process.uninterrupted("kl").outcome, outcome(run)) == []
