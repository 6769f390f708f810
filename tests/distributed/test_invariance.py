"""Results do not depend on the number of ranks."""

import math

import pytest

from tests.distributed.conftest import largest_difference
from tests.helpers.fast_cases import fast_cases
from tests.helpers.training_recipes import CHANGES

FAST = ("replay",)
FLOAT32 = ("masked", "soft", "roles", "frozen", "flow")  # policies that compute in float32 only
IN_FLOAT64 = [name for name in CHANGES if name.split()[0] not in FLOAT32]


def same_values(a, b):
    """Whether JSON values are equal, but for rounding of numbers."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_values(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_values, a, b))
    return same_number(a, b, 1e-9) if isinstance(a, float) else a == b


def same_number(a, b, tolerance):
    a, b = float(a), float(b)
    return (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * max(1.0, abs(b))


@pytest.mark.parametrize("ranks", fast_cases(1, [2, 4]))
@pytest.mark.parametrize(
    "recipe",
    fast_cases(FAST, IN_FLOAT64),
)
def test_tokens_rewards_metrics_and_weights_are_those_of_one_process(rank_processes, recipe, ranks):
    alone, together = (rank_processes.trained(recipe, n) for n in (1, ranks))
    for journal in ("rollouts", "responses", "scores"):
        assert same_values(getattr(together, journal), getattr(alone, journal)), journal
    assert largest_difference(together.weights, alone.weights) < 1e-10
    for metrics, expected in zip(together.metrics, alone.metrics, strict=True):
        assert metrics.keys() == expected.keys()
        for name in metrics:
            if not name.startswith("sampler_mismatch/"):  # rounding of float32, and its largest
                assert same_number(metrics[name], expected[name], 1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", ["masked", "soft", "roles", "frozen main policy", "flow", "flow branches"]
)
def test_one_step_in_float32_is_that_of_one_process(rank_processes, recipe):
    changes = {"max_steps": 1}
    alone, together = (
        rank_processes.trained(recipe, n, f"step of {recipe} {n}", changes=changes) for n in (1, 2)
    )
    assert [r["text"] for r in together.rollouts] == [r["text"] for r in alone.rollouts]
    assert largest_difference(together.weights, alone.weights) < 1e-3


@pytest.mark.slow
def test_runs_at_two_ranks_have_the_same_bits(rank_processes):
    first, second = (rank_processes.trained("kl", 2, f"kl {name}") for name in ("one", "two"))
    assert first.rollouts == second.rollouts
    assert first.responses == second.responses
    assert first.metrics == second.metrics
    assert largest_difference(first.weights, second.weights) == 0
