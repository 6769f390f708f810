"""The same seed gives the same run, whatever threads, hashes and other programs do."""

from pathlib import Path

import pytest
import torch

from grupo.kernels.prefix_cache import PrefixCache
from grupo.training.start import run_training
from tests.helpers import training_components, training_recipes
from tests.helpers.fast_cases import fast_cases
from tests.helpers.repeated_index import RepeatedIndexCheck
from tests.helpers.repeated_runs import assert_equal_runs, outcomes, training_process
from tests.helpers.run_outcomes import differences, outcome

FAST = ("wide", "flow", "masked")
EVERY = tuple(training_recipes.CHANGES)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    training_components.save_models(folder)
    return folder


@pytest.mark.slow
def test_runs_depend_neither_on_hash_seeds_nor_on_a_kill(tmp_path):
    expected = outcomes(tmp_path, 1, 2, FAST)
    with training_process(tmp_path, 3) as process:  # "flow" depended on whether it is 1 or 3
        for name in FAST:
            run = tmp_path / "killed" / name
            assert process("train", run, recipe=name, threads=2, kill="step/begin:3").killed
            assert process("resume", run, threads=2).succeeded
            assert differences(expected[name], outcome(run)) == [], name


@pytest.mark.slow
def test_every_kind_of_run_depends_neither_on_hash_seeds_nor_on_load(tmp_path):
    assert_equal_runs(tmp_path, 2, EVERY, 2, load=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    fast_cases(FAST[:1], EVERY),
)
def test_no_write_of_a_run_depends_on_the_order_of_its_rows(name, model, tmp_path):
    recipe = training_recipes.recipe(name, str(model))
    with RepeatedIndexCheck() as check:
        run_training(recipe.replace(max_steps=2), tmp_path / "run")
    assert check.num_writes
    assert check.reports == []


@pytest.mark.slow
def test_repeated_slots_of_the_prefix_cache_are_detected_in_a_run(model, tmp_path, monkeypatch):
    write_kv = PrefixCache.write_kv

    def write_twice(self, layer, slots, k, v):
        index = torch.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots
        write_kv(self, layer, torch.cat([index, index]), torch.cat([k, k + 1]), torch.cat([v, v]))

    monkeypatch.setattr(PrefixCache, "write_kv", write_twice)
    with RepeatedIndexCheck() as check:
        run_training(
            training_recipes.recipe("wide", str(model)).replace(max_steps=1), tmp_path / "run"
        )
    assert any("prefix_cache.py" in report for report in check.reports)


@pytest.mark.parametrize(
    ("index", "values", "accumulate", "expected"),
    [
        ([0, 1], [1.0, 2.0], False, False),
        ([0, 0], [1.0, 2.0], False, True),
        ([0, 0], [2.0, 2.0], False, False),
        ([2, 0, 2], [2.0, 1.0, 3.0], False, True),
        ([0, 0], [1.0, 2.0], True, True),
        ([0, 0], [1, 2], True, False),
    ],
)
def test_a_repeated_index_with_different_values_is_detected(index, values, accumulate, expected):
    values = torch.tensor(values)
    with RepeatedIndexCheck() as check:
        torch.zeros(3, dtype=values.dtype).index_put_((torch.tensor(index),), values, accumulate)
    assert bool(check.reports) == expected


def test_repeated_rows_of_scatter_and_index_copy_are_detected():
    with RepeatedIndexCheck() as check:
        torch.zeros(2, 3).scatter_(1, torch.tensor([[1, 1]]), torch.tensor([[1.0, 2.0]]))
        torch.zeros(2, 3).index_copy_(0, torch.tensor([1, 1]), torch.randn(2, 3))
        torch.zeros(2, 3).scatter_(1, torch.tensor([[1], [1]]), torch.tensor([[1.0], [2.0]]))
    assert len(check.reports) == 2
