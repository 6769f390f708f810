from math import exp, log

import pytest

from grupo.algo.advantages import chain
from grupo.algo.losses import ImportanceWeight, Reinforce, TruncatedIS
from grupo.methods.optimal_token_baseline import (
    RewardToGo,
    SubtractTokenBaseline,
    optimal_token_baseline,
)
from grupo.testing.batches import make_batch

PI = exp(-1.0)  # of every action


def advantages(reward, length, collision, group=None):
    batch = make_batch(
        group=group or [0] * len(reward),
        reward=reward,
        length=length,
        signals={"collision": collision},
    )
    return SubtractTokenBaseline(eps=0.0)(batch.reward, batch)


def test_baseline_weights_by_cumulative_score_norm():
    A = advantages([1.0, 0.0], [2, 2], [[0.5, 0.4], [0.9, 0.2]])
    w = [[1 - 2 * PI + 0.5, 1 - 2 * PI + 0.4], [1 - 2 * PI + 0.9, 1 - 2 * PI + 0.2]]
    b1 = w[0][0] / (w[0][0] + w[1][0])
    W = [w[0][0] + w[0][1], w[1][0] + w[1][1]]
    b2 = W[0] / (W[0] + W[1])
    assert A.tolist() == [pytest.approx([1 - b1, 1 - b2]), pytest.approx([-b1, -b2])]


def test_equal_norms_have_mean_of_remaining_rollouts():
    A = advantages([1.0, 0.0, 0.5], [2, 1, 2], [[0.5, 0.5]] * 3)
    assert A.tolist() == [
        pytest.approx([0.5, 0.25]),  # means 0.5 of three and 0.75 of two
        pytest.approx([-0.5, 0.0]),
        pytest.approx([0.0, -0.25]),
    ]


def test_last_remaining_and_single_rollouts_have_zero_advantage():
    A = advantages(
        [1.0, 0.0, 3.0], [2, 1, 1], [[0.5, 0.5], [0.5, 9.0], [0.5, 9.0]], group=[0, 0, 1]
    )
    assert A[0].tolist() == pytest.approx([0.5, 0.0])
    assert A[2].tolist() == pytest.approx([0.0, 0.0])


def test_baseline_of_fewer_than_min_rollouts_is_zero():
    batch = make_batch(
        group=[0, 0, 1],
        reward=[1.0, 0.0, 3.0],
        length=[2, 1, 1],
        signals={"collision": [[0.5, 0.5], [0.5, 9.0], [0.5, 9.0]]},
    )
    A = SubtractTokenBaseline(eps=0.0, min_rollouts=2)(batch.reward, batch)
    assert A.tolist() == [
        pytest.approx([0.5, 1.0]),
        pytest.approx([-0.5, 0.0]),
        pytest.approx([3.0, 0.0]),
    ]


def test_deterministic_actions_add_no_norm_and_have_no_baseline():
    batch = make_batch(
        group=[0, 0], reward=[1.0, 1.0], logp=0.0, signals={"collision": [[1.0], [1.0]]}
    )
    A = optimal_token_baseline().advantage(batch.reward, batch)
    assert A.flatten().tolist() == [1.0, 1.0]  # 1 - 2 + 1 = 0: there the gradient is 0, too


def test_baseline_minimizes_proxy_variance():
    # sum_j W_j (r_j - b)^2 at the first place, W its norms
    collision = [[0.5], [0.9], [0.1]]
    reward = [1.0, 0.0, 0.25]
    b = reward[0] - advantages(reward, [1, 1, 1], collision)[0, 0].item()
    W = [1 - 2 * PI + c for (c,) in collision]

    def variance(b):
        return sum(w * (r - b) ** 2 for w, r in zip(W, reward, strict=True))

    assert variance(b) < min(variance(b - 0.01), variance(b + 0.01), variance(sum(reward) / 3))


def test_default_hyperparameters():
    method = optimal_token_baseline()
    assert method.loss == Reinforce()
    assert method.requires.all_signals == {"collision"}


def test_baseline_of_rewards_to_go():
    batch = make_batch(
        group=[0, 0],
        length=[2, 2],
        signals={"collision": [[0.5, 0.5]] * 2, "step/reward": [[1.0, 2.0], [0.0, 4.0]]},
    )
    A = chain(RewardToGo(), SubtractTokenBaseline(eps=0.0))(batch.reward, batch)
    # returns (3, 2) and (4, 4), equal weights
    assert A.tolist() == [pytest.approx([-0.5, -1.0]), pytest.approx([0.5, 1.0])]


def test_score_norms_are_scaled_by_the_squared_ratio_to_the_engine():
    batch = make_batch(
        group=[0, 0],
        reward=[1.0, 0.0],
        logp=-1.0,
        signals={"collision": [[0.5], [0.5]], "logp@sampler": [[-1.0 - log(2.0)], [-1.0]]},
    )
    weight = ImportanceWeight(TruncatedIS(5.0))
    A = SubtractTokenBaseline(eps=0.0, weight=weight)(batch.reward, batch)
    assert A.flatten().tolist() == pytest.approx([1 - 4 / 5, -4 / 5])  # weights 2^2 and 1
