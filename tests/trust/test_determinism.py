"""Twenty runs of each recipe with several threads, under load, have the same bits."""

import pytest

from tests.helpers.repeated_runs import assert_equal_runs
from tests.helpers.trust_cases import scaled

pytestmark = pytest.mark.trust

RECIPES = ("wide", "kl", "flow", "flow deviations", "masked", "roles", "tree")
NUM_RUNS = 20


@pytest.mark.parametrize("threads", [2, 4])
def test_repeated_runs_under_load_have_the_same_bits(threads, tmp_path):
    assert_equal_runs(tmp_path, threads, RECIPES, max(2, scaled(NUM_RUNS)), load=2)
