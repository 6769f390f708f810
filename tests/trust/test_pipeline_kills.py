"""Pipelines killed at random moments, and in each hand-over and export, end with the same bits."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import pytest

from tests.helpers.pipelines import pipeline_outcome
from tests.helpers.run_outcomes import differences
from tests.helpers.trust_cases import SEED, scaled

pytestmark = pytest.mark.trust

KILLS_PER_PIPELINE = 10
NUM_PIPELINES = scaled(10)
NUM_WINDOW_KILLS = scaled(20)
ATTEMPTS = 100


class Window(NamedTuple):
    """A part of a pipeline between two passages of kill points, each as `name:number`."""

    recipe: str
    begin: str
    end: str


WINDOWS = {
    "the hand-over between two stages": Window("chain", "stage/ended:1", "step/updated:3"),
    "the export": Window("exported", "stage/begin:3", "stage/begin:4"),
}


class Uninterrupted(NamedTuple):
    """A pipeline without a kill: its outcome, and the kill points that it passed."""

    outcome: dict[str, object]
    points: Sequence[str]
    times: Sequence[float]
    seconds: float

    def time_of(self, passage: str) -> float:
        name, number = passage.split(":")
        times = [t for point, t in zip(self.points, self.times, strict=True) if point == name]
        return times[int(number) - 1]


@pytest.fixture(scope="module")
def uninterrupted(training_process):
    """The uninterrupted pipeline of a name, run once."""
    results = {}

    def run(name: str) -> Uninterrupted:
        if name not in results:
            root = training_process.root / "pipelines" / name
            result = training_process.resume_or_run_pipeline(root, name)
            assert result.succeeded, result
            results[name] = Uninterrupted(
                pipeline_outcome(root), result.points, result.times, result.seconds
            )
        return results[name]

    return run


@pytest.mark.parametrize("number", range(NUM_PIPELINES))
@pytest.mark.parametrize("recipe", ["chain", "exported"])
def test_a_pipeline_killed_ten_times_at_random_moments_ends_with_the_same_bits(
    recipe, number, training_process, uninterrupted, tmp_path
):
    rng = Random(f"{SEED}/{recipe}/{number}")
    expected = uninterrupted(recipe)
    root, kills = tmp_path / "pipeline", 0
    for attempt in range(ATTEMPTS):
        after = rng.uniform(0, expected.seconds)
        result = training_process.resume_or_run_pipeline(root, recipe, after=after)
        kills += result.killed
        if not result.killed:
            assert result.succeeded, result
            assert differences(expected.outcome, pipeline_outcome(root)) == []
            root = root.with_name(f"pipeline {attempt}")
        if kills == KILLS_PER_PIPELINE:
            break
    result = training_process.resume_or_run_pipeline(root, recipe)
    assert result.succeeded, result
    assert differences(expected.outcome, pipeline_outcome(root)) == []
    assert kills == KILLS_PER_PIPELINE


@pytest.mark.parametrize("number", range(NUM_WINDOW_KILLS))
@pytest.mark.parametrize("name", WINDOWS)
def test_a_pipeline_killed_within_a_part_of_it_ends_with_the_same_bits(
    name, number, training_process, uninterrupted, tmp_path
):
    window = WINDOWS[name]
    expected = uninterrupted(window.recipe)
    seconds = expected.time_of(window.end) - expected.time_of(window.begin)
    after = Random(f"{SEED}/{name}/{number}").uniform(0, seconds)
    root = tmp_path / "pipeline"
    killed = training_process.resume_or_run_pipeline(
        root, window.recipe, at=window.begin, after=after
    )
    assert killed.killed, killed
    result = training_process.resume_or_run_pipeline(root, window.recipe)
    assert result.succeeded, result
    assert differences(expected.outcome, pipeline_outcome(root)) == []
