from math import comb

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.max_rl import RelativeToMean, max_rl
from grupo.testing.batches import make_batch


def test_advantage_is_relative_to_pass_rate():
    batch = make_batch(group=[0, 0, 0, 0, 1, 1], reward=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    A = RelativeToMean(eps=0.0)(batch.reward, batch)
    assert A.tolist() == [3, -1, -1, -1, 1, -1]  # (1 - 1/4) / (1/4); (1 - 1/2) / (1/2)


def test_uniform_groups_have_zero_advantage():
    batch = make_batch(group=[0, 0, 1, 1, 2], reward=[0.0, 0.0, 1.0, 1.0, 1.0])
    assert max_rl().advantage(batch.reward, batch).tolist() == [0, 0, 0, 0, 0]


def test_expectation_is_gradient_of_truncated_log_series():
    n, p = 4, 0.3  # a success has score 1 / p, a failure -1 / (1 - p)
    expected = 0.0
    for right in range(1, n):
        batch = make_batch(group=[0] * n, reward=[1.0] * right + [0.0] * (n - right))
        A = RelativeToMean(eps=0.0)(batch.reward, batch)
        score = torch.tensor([1 / p] * right + [-1 / (1 - p)] * (n - right)).double()
        chance = comb(n, right) * p**right * (1 - p) ** (n - right)
        expected += chance * (A * score).mean().item()
    # d/dp of log p = -sum_k (1 - p)^k / k is sum_k (1 - p)^(k - 1); here k < n
    assert expected == pytest.approx(sum((1 - p) ** (k - 1) for k in range(1, n)))


def test_default_hyperparameters():
    assert max_rl().loss == Clip(0.2, 0.2)
    assert max_rl().aggregation is token_mean
