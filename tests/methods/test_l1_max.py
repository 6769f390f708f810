"""L1-Max: below, at and above the budget."""

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.l1_max import SoftBudgetLimit, l1_max
from grupo.testing.batches import make_batch


def rewards(length, reward, budget=4.0, price=0.25):
    n = len(length)
    batch = make_batch([0] * n, reward, length=length, reward_terms={"budget": [budget] * n})
    return SoftBudgetLimit(price, reward_at_budget=0.5)(batch.reward, batch).tolist()


def test_reward_decreases_with_tokens_over_budget():
    assert rewards([3, 4, 5], [1.0] * 3) == [0.75, 0.5, 0.25]


def test_reward_factor_is_clipped_to_unit_interval():
    assert rewards([1, 9], [1.0, 1.0]) == [1.0, 0.0]


def test_wrong_answer_has_zero_reward():
    assert rewards([1, 4], [0.0, 0.0]) == [0.0, 0.0]


def test_thousand_tokens_over_budget_cost_three_tenths():
    (step, *_) = l1_max().advantage.estimators
    batch = make_batch([0], [1.0], length=[2000], reward_terms={"budget": [1000.0]})
    assert step(batch.reward, batch).item() == pytest.approx(0.2)


def test_step_has_2_minibatches():
    assert l1_max().updates == Updates(minibatches=2)
