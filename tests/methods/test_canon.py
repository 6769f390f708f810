"""CANON's halves, computed by hand."""

import pytest

from grupo.methods.canon import ConditionalAdvantage, canon
from grupo.testing.batches import make_batch


def by_length(x, batch):
    return batch.lengths


BATCH = make_batch(group=[0] * 4, reward=[1, 0, 1, 1], length=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("mu", "A"),
    [
        (1.0, [0.0, -1.0, 0.5, 0.5]),  # against the other half: means 1/2 and 1
        (0.0, [0.5, -0.5, 0.0, 0.0]),  # against its own
        (0.5, [0.25, -0.75, 0.25, 0.25]),  # against the group, whose mean is 3/4
    ],
)
def test_between_weight_selects_the_compared_half(mu, A):
    assert ConditionalAdvantage(mu, by_length)(BATCH.reward, BATCH).tolist() == pytest.approx(A)


def test_high_scale_reduces_rewards_of_the_upper_half():
    A = ConditionalAdvantage(1.0, by_length, high_scale=0.9)(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx([1 - 0.9, -0.9, 0.9 - 0.5, 0.9 - 0.5])


def test_middle_of_an_odd_group_is_in_the_upper_half():
    batch = make_batch(group=[0] * 3, reward=[0.0, 1.0, 0.5], length=[3, 1, 2])
    # the shortest earned 1, the others 0 and 1/2
    A = ConditionalAdvantage(1.0, by_length)(batch.reward, batch)
    assert A.tolist() == pytest.approx([0 - 1, 1 - 0.25, 0.5 - 1])


def test_ties_at_the_median_are_split_between_the_halves():
    batch = make_batch(group=[0] * 4, reward=[1.0, 0.0, 1.0, 0.0], length=[1, 2, 2, 3])
    # lower 1, 1/2, 1/2, 0 of each: means of rewards (1 + 1/2) / 2 and (1/2) / 2
    A = ConditionalAdvantage(1.0, by_length)(batch.reward, batch)
    middle = (0.75 + 0.25) / 2
    assert A.tolist() == pytest.approx([1 - 0.25, -middle, 1 - middle, -0.75])


def test_equal_metrics_give_dr_grpo():
    batch = make_batch(group=[0] * 4, reward=[1, 0, 1, 1])
    A = ConditionalAdvantage(1.0, by_length)(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.25, -0.75, 0.25, 0.25])


def test_group_of_one_is_compared_with_0():
    batch = make_batch(group=[0], reward=[1])
    assert ConditionalAdvantage(1.0, by_length)(batch.reward, batch).tolist() == [1.0]


def test_halves_are_split_by_mean_entropy():
    entropy = [[1.0, 2.0], [3.0, 99.0]]  # means 1.5 and 3: the last is padding
    batch = make_batch(group=[0, 0], reward=[1, 0], length=[2, 1], signals={"entropy": entropy})
    A = ConditionalAdvantage(1.0, high_scale=0.5)(
        batch.reward, batch
    )  # low 1 - 0 / 2, high 0 / 2 - 1
    assert A.tolist() == [1.0, -1.0]


def test_defaults_are_the_papers():
    method = canon()
    assert method.advantage == ConditionalAdvantage(1.0)
    assert method.aggregation.max_length == 8192
    assert method.requires.all_signals == {"entropy"}
