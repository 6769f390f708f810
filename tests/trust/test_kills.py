"""Runs killed at every passage of every kill point end with the bits of the uninterrupted run."""

from collections import Counter

import pytest

from grupo.storage.fault_injection import BEGIN_POINTS, RESUME_POINTS, SAVE_POINTS, STEP_POINTS
from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.trust_cases import share_of

pytestmark = pytest.mark.trust

RECIPES = ("grpo", "async", "replay async", "tools", "tree", "lora", "bandit", "again")
NUM_STEPS, NUM_SAVES, NUM_EVALUATIONS = 5, 3, 4
ONCE = ("run/begin", "run/ended", "save/removing", *BEGIN_POINTS)


def num_passages(name: str) -> int:
    """The number of times that a run of these recipes passes a kill point."""
    if name in ONCE or name.startswith("run/summary/"):
        return 1
    if name == "run/evaluated":
        return NUM_EVALUATIONS
    return NUM_SAVES if name.startswith("save/") else NUM_STEPS


PASSAGES = Counter({name: num_passages(name) for name in BEGIN_POINTS + SAVE_POINTS + STEP_POINTS})
KILLS = [(r, f"{p}:{n + 1}") for r in RECIPES for p in PASSAGES for n in range(PASSAGES[p])]
# (recipe, kill of the run, kill of its resume)
KILLS_WHILE_RESUMING = [
    (recipe, f"{first}:{n}", f"{point}:1")
    for recipe in RECIPES
    for point in RESUME_POINTS
    for first, n in (("step/updated", 1), ("step/begin", 4), ("save/renamed", 3))
]


@pytest.mark.parametrize("recipe", share_of(RECIPES))
def test_the_kills_are_all_passages_of_a_run(recipe, training_process):
    assert Counter(training_process.uninterrupted(recipe).points) == PASSAGES
    assert len(KILLS) >= 1200


@pytest.mark.parametrize(("recipe", "kill"), share_of(KILLS))
def test_a_run_killed_at_any_passage_of_a_point_ends_with_the_same_bits(
    recipe, kill, training_process, tmp_path
):
    assert_same_outcome(training_process, tmp_path / "run", recipe, kill)


@pytest.mark.parametrize(("recipe", "first", "second"), share_of(KILLS_WHILE_RESUMING))
def test_a_run_killed_again_while_resuming_ends_with_the_same_bits(
    recipe, first, second, training_process, tmp_path
):
    assert_same_outcome(training_process, tmp_path / "run", recipe, first, second)
