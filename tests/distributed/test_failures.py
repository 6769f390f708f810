"""Ranks that are killed, hang, lack memory or differ: the others say so, and the run goes on."""

import pytest

from grupo.storage.fault_injection import SAVE_POINTS, STEP_POINTS
from tests.distributed.conftest import Written, largest_difference
from tests.helpers.fast_cases import fast_cases

STEPS_OF_ALL = [  # that every rank passes; only the first one writes
    name for name in STEP_POINTS if not name.startswith(("run/summary", "step/logging", "run/b"))
]
LAST_POINTS = ("save/removing:1",)  # of the last save
POINTS = [f"{name}:{1 + i % 2}" for i, name in enumerate((*STEPS_OF_ALL, *SAVE_POINTS))]
POINTS = ["step/accumulated:3", *(name for name in POINTS if not name.startswith("run/ended"))]


def signalled_run(rank_processes, run, point, rank, **options):
    return rank_processes(
        "train", run, 2, recipe="kl", at=point, signalled=rank, patience=3, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_rank_is_named_and_the_run_goes_on_with_the_same_bits(
    rank_processes, tmp_path, point
):
    rank = 0 if point.startswith("save/") else 1
    run = tmp_path / "run"
    results = signalled_run(rank_processes, run, point, rank)
    assert results[rank]["signal"] == 9
    other = results[1 - rank]
    # during the last save, which rank 0 writes, the other has nothing left to wait for
    assert "RankLostError" in other["error"] or (not other["error"] and point in LAST_POINTS)
    assert other["seconds"] < 15
    if (run / "recipe.json").exists():
        results = rank_processes("resume", run, 2)
        assert [result["error"] for result in results] == ["", ""]
        uninterrupted = rank_processes.trained("kl", 2)
        resumed = Written.of(run)
        assert resumed.rollouts == uninterrupted.rollouts
        assert resumed.metrics == uninterrupted.metrics
        assert largest_difference(resumed.weights, uninterrupted.weights) == 0


@pytest.mark.slow
@pytest.mark.parametrize("point", ["step/accumulated:1", "step/tasks_drawn:2"])
def test_a_rank_that_hangs_is_named_with_its_last_phase(rank_processes, tmp_path, point):
    results = signalled_run(rank_processes, tmp_path / "run", point, 1, signal="SIGSTOP")
    message = results[0]["error"]
    assert "RankLostError: rank 1 (host " in message
    assert "has not reached" in message
    assert results[0]["seconds"] < 15


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), fast_cases(1, [(2, 1), (1, 4), (4, 2)]))
@pytest.mark.parametrize("recipe", ["kl", "async"])
def test_a_run_is_resumed_at_another_number_of_ranks(
    rank_processes, tmp_path, recipe, before, after
):
    run = tmp_path / "run"
    options = {"recipe": recipe, "at": "step/updated:4", "signalled": 0, "patience": 3}
    rank_processes("train", run, before, **options)
    results = rank_processes("resume", run, after)
    assert [result["error"] for result in results] == [""] * after
    resumed, alone = Written.of(run), rank_processes.trained(recipe, 1)
    assert resumed.rollouts == alone.rollouts
    assert largest_difference(resumed.weights, alone.weights) < 1e-10


@pytest.mark.slow
def test_all_ranks_halve_micro_batches_when_one_lacks_memory(rank_processes, tmp_path):
    run = tmp_path / "run"
    results = rank_processes("train", run, 2, recipe="kl", without_memory=1)
    assert [result["error"] for result in results] == ["", ""]
    alone, halved = rank_processes.trained("kl", 1), Written.of(run)
    assert halved.rollouts == alone.rollouts
    assert largest_difference(halved.weights, alone.weights) < 1e-10
    sizes = [step["microbatch_tokens"] for step in halved.metrics]
    assert sizes[-1] == alone.metrics[-1]["microbatch_tokens"] / 2


@pytest.mark.slow
def test_weights_that_differ_are_not_saved(rank_processes, tmp_path):
    run = tmp_path / "run"
    results = rank_processes("train", run, 2, recipe="kl", with_drift=1)
    for result in results:
        assert (
            "RanksDifferError: The weights of rank 1 differ from those of rank 0"
            in (result["error"])
        )
    assert not list((run / "checkpoints").glob("step-*"))
