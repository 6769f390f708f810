"""A pipeline killed at any point and resumed ends with the bits of the uninterrupted one."""

from collections import Counter

import pytest

from grupo.storage.fault_injection import PIPELINE_POINTS
from tests.helpers.fast_cases import fast_cases
from tests.helpers.pipelines import pipeline_outcome
from tests.helpers.run_outcomes import differences

BEGIN = [name for name in PIPELINE_POINTS if name.startswith("pipeline/")]
DATA = [name for name in PIPELINE_POINTS if name.startswith("data/")]
MERGE = [name for name in PIPELINE_POINTS if name.startswith("merge/")]


@pytest.fixture(scope="module")
def uninterrupted(training_process):
    """The result and the outcome of each pipeline, run once without a kill."""
    results = {}

    def run(name: str):
        if name not in results:
            root = training_process.root / "pipelines" / name
            result = training_process("pipeline", root, recipe=name)
            assert result.succeeded, result
            results[name] = result, pipeline_outcome(root)
        return results[name]

    return run


@pytest.fixture
def assert_same_bits(training_process, uninterrupted, tmp_path):
    """Kill a pipeline at each point in turn, resume it, and compare it with the uninterrupted."""

    def check(name: str, *kills: str) -> None:
        root = tmp_path / "pipeline"
        for kill in kills:
            result = training_process.resume_or_run_pipeline(root, name, kill=kill)
            assert result.killed, (kill, result.error)
        result = training_process.resume_or_run_pipeline(root, name)
        assert result.succeeded, result
        assert differences(uninterrupted(name)[1], pipeline_outcome(root)) == []

    return check


@pytest.mark.slow
def test_pipelines_pass_every_kill_point_of_a_pipeline(uninterrupted):
    names = ("merged", "surveyed", "collected")
    points = Counter(point for name in names for point in uninterrupted(name)[0].points)
    assert set(PIPELINE_POINTS) <= set(points)


@pytest.mark.slow
def test_stages_have_different_weights(uninterrupted):
    _, outcomes = uninterrupted("merged")
    weights = [str(outcomes[f"1/{name}"]["weights"]) for name in ("a", "b", "soup")]
    assert len(set(weights)) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill",
    fast_cases(
        ["step/updated:1", "stage/ended:1", "stage/begin:2", "step/updated:3"],
        [
            *(f"{name}:1" for name in BEGIN),
            "stage/begin:1",
            "step/updated:1",
            "save/renamed:2",
            "run/summary/written:1",
            "run/ended:1",
            "stage/ended:1",
            "stage/begin:2",
            "begin/recipe/synced:2",
            "begin/recipe/renamed:2",
            "step/updated:3",
            "save/latest/renamed:4",
            "run/summary/renamed:2",
            "stage/ended:2",
        ],
    ),
)
def test_a_chain_killed_in_or_between_stages(kill, assert_same_bits):
    assert_same_bits("chain", kill)


@pytest.mark.slow
@pytest.mark.parametrize("name", MERGE)
def test_a_pipeline_killed_while_it_merges(name, assert_same_bits):
    assert_same_bits("merged", f"{name}:1")


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA)
def test_a_pipeline_killed_while_it_writes_a_survey(name, assert_same_bits):
    assert_same_bits("surveyed", f"{name}:1")


@pytest.mark.slow
@pytest.mark.parametrize("kill", ["data/begun:2", "data/written:2", "data/renamed:2"])
def test_a_pipeline_killed_while_it_exports_a_model(kill, assert_same_bits):
    assert_same_bits("exported", kill)


@pytest.mark.slow
@pytest.mark.parametrize("kill", ["data/written:2", "step/generated:3", "stage/begin:3"])
def test_rounds_of_collections_killed_in_the_second_round(kill, assert_same_bits):
    assert_same_bits("collected", kill)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill", fast_cases(["data/written:2"], ["data/begun:1", "step/generated:2", "stage/begin:3"])
)
def test_rounds_of_distillation_killed_in_a_collection_or_a_run(kill, assert_same_bits):
    assert_same_bits("distilled", kill)


@pytest.mark.slow
def test_a_pipeline_killed_in_every_stage_in_turn(assert_same_bits):
    assert_same_bits(
        "surveyed", "step/updated:1", "stage/begin:2", "data/renamed:1", "step/logging:1"
    )
