from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.qae import QuantileBaseline, qae
from grupo.testing.batches import make_batch


def credit(reward, level=0.4):
    batch = make_batch(group=[0] * len(reward), reward=reward)
    return QuantileBaseline(level, eps=0.0)(batch.reward, batch).tolist()


def test_on_a_hard_prompt_only_the_rare_successes_are_credited():
    # 1 right of 4: F(0) = 3/4 >= 0.4, so that b = 0; deviation sqrt((9/16 + 3/16) / 3) = 1/2
    assert credit([1.0, 0.0, 0.0, 0.0]) == [2, 0, 0, 0]


def test_on_an_easy_prompt_only_the_last_failures_are_credited():
    # 3 right of 4: F(0) = 1/4 < 0.4, so that b = 1
    assert credit([1.0, 1.0, 1.0, 0.0]) == [0, 0, 0, -2]


@pytest.mark.parametrize(("right", "b"), [(5, 0), (6, 0), (7, 1)])
def test_the_regimes_part_where_a_share_of_one_minus_the_level_is_right(right, b):
    credited = credit([1.0] * right + [0.0] * (10 - right))
    p = right / 10
    s = sqrt(10 * p * (1 - p) / 9)
    expected = [(1 - b) / s] * right + [-b / s] * (10 - right)
    assert credited == pytest.approx(expected)  # p <= 0.6 is hard


def test_a_share_is_counted_whatever_rounding_says():
    # 0.1 * 30 is 3.0000000000000004; the third smallest, not the fourth, is the 0.1-quantile
    credited = credit([0.0] * 3 + [1.0] * 27, level=0.1)
    assert credited[0] == 0
    assert credited[-1] > 0


def test_of_graded_rewards_it_is_the_quantile_from_the_right():
    credited = credit([0.1, 0.2, 0.3, 0.4, 0.5])  # F(0.2) = 2/5 >= 0.4
    s = sqrt((0.04 + 0.01 + 0 + 0.01 + 0.04) / 4)
    assert credited == pytest.approx([(r - 0.2) / s for r in (0.1, 0.2, 0.3, 0.4, 0.5)])


def test_equal_rewards_and_a_lone_rollout_give_no_signal():
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 7.0])
    assert qae().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_the_defaults_are_the_papers():
    method = qae()
    assert (method.advantage, method.loss) == (QuantileBaseline(0.4), Clip(0.2, 0.28))
    assert method.filter is keep_nonzero_std
    assert method.aggregation is token_mean
