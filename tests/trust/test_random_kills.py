"""Runs killed at random moments, half of them within saves, end with the same bits."""

from collections import Counter
from random import Random

import pytest

from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.training_recipes import CHANGES
from tests.helpers.trust_cases import SEED, scaled

pytestmark = pytest.mark.trust

NUM_KILLS = 2000
KILLS_PER_RUN = 4
NUM_RUNS = scaled(NUM_KILLS // KILLS_PER_RUN)
RECIPES = [name for name in CHANGES if name not in ("other seed", "talkative")]


def random_kill(uninterrupted, rng: Random, *, in_save: bool) -> dict[str, float | str]:
    """A random moment of a run, or of its next save."""
    if in_save:
        return {"at": "save/begun:1", "after": rng.uniform(0, uninterrupted.save_seconds)}
    return {"after": rng.uniform(0, uninterrupted.seconds)}


def kill_at_random(training_process, run, recipe, rng: Random) -> Counter[bool]:
    """Kill a run at random moments; returns the number of kills outside and within saves.

    The wanted kind of moment alternates. A run that ends before the signal is begun again in
    another folder.
    """
    kills = Counter[bool]()
    uninterrupted = training_process.uninterrupted(recipe)
    for attempt in range(20 * KILLS_PER_RUN):
        in_save = kills[True] <= kills[False]
        moment = random_kill(uninterrupted, rng, in_save=in_save)
        result = training_process.resume_or_train(run, recipe, **moment)
        kills[result.killed_in_save] += result.killed
        if kills.total() >= KILLS_PER_RUN and kills[True] >= kills[False]:
            break
        if not result.killed:
            assert_same_outcome(training_process, run, recipe)
            run = run.with_name(f"run {attempt}")
    assert_same_outcome(training_process, run, recipe)
    return kills


@pytest.mark.parametrize("number", range(NUM_RUNS))
def test_a_run_killed_at_random_moments_ends_with_the_same_bits(number, training_process, tmp_path):
    rng = Random(f"{SEED}/{number}")
    recipe = RECIPES[number % len(RECIPES)]
    kills = kill_at_random(training_process, tmp_path / "run", recipe, rng)
    assert kills[True] + kills[False] >= KILLS_PER_RUN
    assert kills[True] >= KILLS_PER_RUN // 2
