from math import sqrt

import pytest

from grupo.algo.advantages import StandardiseBatch
from grupo.algo.losses import Clip
from grupo.methods.gdpo import gdpo
from grupo.testing.batches import make_batch


def advantages(method, group, **parts):
    total = [sum(r) for r in zip(*parts.values(), strict=True)]
    batch = make_batch(group=group, reward=total, reward_terms=parts)
    return method.advantage(batch.reward, batch).tolist()


def test_advantages_of_two_prompts():
    actual = advantages(gdpo(), [0, 0, 1, 1], correct=[0.0, 1, 0, 1], format=[0.0, 0, 0, 1])
    # standardised: +-1/sqrt(2) for one component, +-2/sqrt(2) for both; their mean is 0,
    # their variance (2 (1/2) + 2 (2)) / 3 = 5/3
    s = sqrt(5 / 3)
    x = 1 / sqrt(2) / s
    assert actual == pytest.approx([-x, x, -2 * x, 2 * x], rel=1e-3)
    assert actual == pytest.approx([-0.5477, 0.5477, -1.0954, 1.0954], abs=1e-3)


def test_constant_reward_term_adds_nothing():
    one = advantages(gdpo(), [0, 0, 1, 1], correct=[0.0, 1, 0, 1], format=[1.0, 1, 0, 0])
    x = 1 / sqrt(2) / sqrt(4 * 0.5 / 3)
    assert one == pytest.approx([-x, x, -x, x], rel=1e-3)


def test_weights_apply_after_standardization():
    method = gdpo(reward_weights=(1.0, 0.5))
    actual = advantages(method, [0, 0, 0], correct=[1.0, 0, 0], format=[0.0, 100.0, 0])
    # standardised sqrt(3) (2/3, -1/3, -1/3) and sqrt(3) (-1/3, 2/3, -1/3), the second halved:
    # sqrt(3) (1/2, 0, -1/2), mean 0, deviation sqrt(3) / 2
    assert actual == pytest.approx([1, 0, -1], abs=1e-3)


def test_batch_normalization_weights_rollouts_equally():
    parts = {"correct": [0.0, 1, 0, 1], "format": [0.0, 0, 0, 1]}
    batch = make_batch(group=[0, 0, 1, 1], length=[1, 5, 2, 9], reward_terms=parts)
    assert gdpo().advantage(batch.reward, batch).tolist() == advantages(
        gdpo(), [0, 0, 1, 1], **parts
    )


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    assert advantages(gdpo(), [0, 0, 1], correct=[1.0, 1, 5], format=[0.0, 0, 1]) == [0, 0, 0]


def test_default_hyperparameters():
    method = gdpo()
    assert method.requires.reward_terms == {"correct", "format"}
    assert method.loss == Clip(0.2, 0.2)
    assert method.advantage.estimators[-1] == StandardiseBatch(eps=1e-4)
