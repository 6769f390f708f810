"""SEED-GRPO: hand-computed scale factors of semantic entropy."""

from math import exp, log

import pytest

from grupo.methods.seed_grpo import ScaleByCertainty, exponential, focal, seed_grpo
from grupo.testing.batches import make_batch


def answers(cluster):
    return make_batch(group=[0] * 8, reward=[1.0] + [0.0] * 7, reward_terms={"cluster": cluster})


def factor(estimator, cluster):
    batch = answers(cluster)
    return estimator(batch.reward + 1, batch)[1].item()


@pytest.mark.parametrize(
    ("cluster", "share"),
    [([3] * 8, 0.0), ([0, 0, 0, 0, 1, 1, 1, 1], 1 / 3), (list(range(8)), 1.0)],
)
def test_advantage_is_scaled_down_by_semantic_entropy(cluster, share):
    # log 2 / log 8 = 1/3
    assert factor(ScaleByCertainty(0.5), cluster) == pytest.approx(1 - share / 2)
    assert factor(ScaleByCertainty(1.0, exponential), cluster) == pytest.approx(exp(-share))
    assert factor(ScaleByCertainty(1.0, focal), cluster) == pytest.approx((1 - share) ** 2)


def test_meanings_are_weighted_by_count():
    SE = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert factor(ScaleByCertainty(1.0), [5, 5, 5, 5, 5, 5, -1, -1]) == pytest.approx(
        1 - SE / log(8)
    )


def test_factor_is_not_negative():
    assert factor(ScaleByCertainty(2.0), list(range(8))) == 0.0


def test_advantages_are_centred_and_not_divided_by_std():
    batch = make_batch(
        group=[0, 0], reward=[1, 0], reward_terms={"cluster": [0, 1]}
    )  # SE / log 2 = 1
    assert seed_grpo().advantage(batch.reward, batch).tolist() == pytest.approx([0.25, -0.25])


def test_single_rollout_has_zero_entropy():
    batch = make_batch(group=[0], reward=[1], reward_terms={"cluster": [0]})
    assert seed_grpo().advantage(batch.reward, batch).tolist() == [0.0]
