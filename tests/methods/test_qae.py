from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.qae import QuantileBaseline, qae
from grupo.testing.batches import make_batch


def advantages(reward, level=0.4):
    batch = make_batch(group=[0] * len(reward), reward=reward)
    return QuantileBaseline(level, eps=0.0)(batch.reward, batch).tolist()


def test_hard_prompt_has_advantage_for_rare_successes_only():
    # 1 right of 4: F(0) = 3/4 >= 0.4, so that b = 0; deviation sqrt((9/16 + 3/16) / 3) = 1/2
    assert advantages([1.0, 0.0, 0.0, 0.0]) == [2, 0, 0, 0]


def test_easy_prompt_has_advantage_for_remaining_failures_only():
    # 3 right of 4: F(0) = 1/4 < 0.4, so that b = 1
    assert advantages([1.0, 1.0, 1.0, 0.0]) == [0, 0, 0, -2]


@pytest.mark.parametrize(("right", "b"), [(5, 0), (6, 0), (7, 1)])
def test_regimes_switch_at_one_minus_quantile_level(right, b):
    actual = advantages([1.0] * right + [0.0] * (10 - right))
    p = right / 10
    s = sqrt(10 * p * (1 - p) / 9)
    expected = [(1 - b) / s] * right + [-b / s] * (10 - right)
    assert actual == pytest.approx(expected)  # p <= 0.6 is hard


def test_success_fraction_is_robust_to_rounding():
    # 0.1 * 30 is 3.0000000000000004; the third smallest, not the fourth, is the 0.1-quantile
    actual = advantages([0.0] * 3 + [1.0] * 27, level=0.1)
    assert actual[0] == 0
    assert actual[-1] > 0


def test_graded_rewards_use_quantile_baseline():
    actual = advantages([0.1, 0.2, 0.3, 0.4, 0.5])  # F(0.2) = 2/5 >= 0.4
    s = sqrt((0.04 + 0.01 + 0 + 0.01 + 0.04) / 4)
    assert actual == pytest.approx([(r - 0.2) / s for r in (0.1, 0.2, 0.3, 0.4, 0.5)])


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 7.0])
    assert qae().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_defaults_match_paper():
    method = qae()
    assert (method.advantage, method.loss) == (QuantileBaseline(0.4), Clip(0.2, 0.28))
    assert method.filter is keep_nonzero_std
    assert method.aggregation is token_mean
