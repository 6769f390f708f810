"""A run killed at any named place, or at any time, ends with the bits of one that never was."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from grupo.storage import fault_injection
from tests.helpers.paths import ROOT
from tests.helpers.run_outcomes import differing, outcome
from tests.helpers.training_processes import Trainee
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
TOLD = ("step/begin", "step/updated", "step/logging", "step/saved", "save/renamed", "save/ended")
CONFIGURATIONS = [name for name in CHANGES if name not in ("grpo", "long", "other seed")]
slow = pytest.mark.slow


def nth(trainee: Trainee, recipe: str, name: str, which: str) -> str:
    """The place that the environment would name: the first, a middle or the last time there."""
    count = trainee.whole(recipe).passed.count(name)
    numbers = {"first": 1, "middle": (count + 1) // 2, "last": count}
    return f"{name}:{numbers[which]}"


def ends_alike(trainee: Trainee, run: Path, recipe: str, *kills: str) -> None:
    """Killed at each place in turn, then left alone, it ends as if it had been all the time."""
    for kill in kills:
        assert trainee.go_on(run, recipe, kill=kill).killed, kill
    answer = trainee.go_on(run, recipe)
    assert answer.lived, answer
    assert differing(trainee.whole(recipe).outcome_term, outcome(run)) == []


def test_a_run_passes_every_named_place(trainee):
    passed = Counter(trainee.whole("grpo").passed)
    assert set(passed) == set(NAMES)
    assert {name for name, count in passed.items() if count == 1} == ONCE
    assert min(passed[name] for name in OFTEN) >= 3


def test_the_page_on_runs_says_how_many():
    page = (ROOT / "docs" / "runs.md").read_text()
    assert f"each of {len(NAMES) + len(fault_injection.RESUME_POINTS)} named places" in page
    assert f", {len(CONFIGURATIONS)} configurations" in page


@pytest.mark.parametrize(
    ("name", "which"),
    [
        *((name, "first") for name in NAMES if name in ONCE),
        *((name, "middle") for name in OFTEN),
        *((name, which) for name in TOLD for which in ("first", "last")),
        *(
            pytest.param(name, which, marks=slow)
            for name in OFTEN
            if name not in TOLD
            for which in ("first", "last")
        ),
    ],
)
def test_a_run_killed_at_a_place_ends_with_the_same_bits(name, which, trainee, tmp_path):
    ends_alike(trainee, tmp_path / "run", "grpo", nth(trainee, "grpo", name, which))


@pytest.mark.parametrize("recipe", CONFIGURATIONS)
def test_whatever_it_trains_it_ends_with_the_same_bits(recipe, trainee, tmp_path):
    last = trainee.whole(recipe).passed.count("step/collated") or 1
    places = ("step/logged:1", f"step/generated:{max(1, last - 1)}")
    ends_alike(trainee, tmp_path / "run", recipe, *places)


@slow
@pytest.mark.parametrize("name", [name for name in OFTEN if name.startswith(("step/", "run/"))])
@pytest.mark.parametrize("recipe", CONFIGURATIONS)
def test_whatever_it_trains_it_may_be_killed_anywhere(recipe, name, trainee, tmp_path):
    if name not in trainee.whole(recipe).passed:
        pytest.skip("this run never gets there")
    ends_alike(trainee, tmp_path / "run", recipe, nth(trainee, recipe, name, "last"))


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
def test_a_resumed_run_may_be_killed_again(kills, trainee, tmp_path):
    ends_alike(trainee, tmp_path / "run", "grpo", *kills)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=slow) for seed in range(1, 11))])
def test_a_run_killed_ten_times_at_any_moment_ends_with_the_same_bits(seed, trainee, tmp_path):
    rng, whole = Random(seed), trainee.whole("long").seconds
    moments = [0.05, *(rng.uniform(0.05, 0.5) for _ in range(9))]
    killed = [trainee.go_on(tmp_path / "run", "long", after=x * whole).killed for x in moments]
    assert killed[0]  # it cannot have ended so soon
    ends_alike(trainee, tmp_path / "run", "long")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_stop_goes_on_with_the_same_bits(by, trainee, tmp_path):
    """After its first step: Python may hear of it some steps later, and that is fine."""
    logged = str(tmp_path / "run" / "metrics.jsonl")
    answer = trainee.go_on(tmp_path / "run", "long", after=0, once=logged, by=by)
    assert answer.signal == by or answer.standard_error in ("KeyboardInterrupt: ", "")
    ends_alike(trainee, tmp_path / "run", "long")


def test_it_ends_with_the_same_bits_in_processes_of_their_own(trainee, tmp_path):
    """Begun in one process, gone on with in two others that order sets otherwise."""
    run = tmp_path / "run"
    assert trainee.go_on(run, "kl", kill="step/begin:1").killed
    for hashes, kill, code in (("1", "save/committed:1", -signal.SIGKILL), ("2", "", 0)):
        told = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hashes, "GRUPO_KILL_AT": kill}
        done = subprocess.run(
            [sys.executable, "-m", "grupo", "resume", run],
            cwd=ROOT,
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, "")
    assert differing(trainee.whole("kl").outcome_term, outcome(run)) == []
