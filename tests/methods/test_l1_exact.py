"""L1-Exact: lengths above and below the budget."""

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.l1_exact import BudgetDistancePenalty, l1_exact
from grupo.testing.batches import make_batch


def test_penalty_is_proportional_to_distance_from_budget():
    batch = make_batch(
        [0] * 4, [1.0, 1.0, 0.0, 1.0], length=[1, 3, 3, 6], reward_terms={"budget": [3.0] * 4}
    )
    r = BudgetDistancePenalty(0.01)(batch.reward, batch).tolist()
    assert r == pytest.approx([0.98, 1.0, 0.0, 0.97])


def test_penalty_of_thousand_tokens_is_below_correctness_reward():
    batch = make_batch([0], [1.0], length=[1000], reward_terms={"budget": [2000.0]})
    (step, *_) = l1_exact().advantage.estimators
    assert step(batch.reward, batch).item() == pytest.approx(0.7)


def test_closest_to_budget_has_highest_advantage():
    batch = make_batch([0, 0], [1.0, 1.0], length=[2, 4], reward_terms={"budget": [4.0, 4.0]})
    advantage = batch.with_advantage(l1_exact().advantage).advantage[:, 0]
    assert advantage.tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5], rel=1e-2)


def test_step_has_2_minibatches():
    assert l1_exact().updates == Updates(minibatches=2)
