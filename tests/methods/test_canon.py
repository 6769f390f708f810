"""CANON's halves, computed by hand."""

from math import cos, pi

import pytest

from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.schedules import resolve_schedules
from grupo.methods.canon import (
    COSINE_FIRST_INTER_LATER_INTRA,
    COSINE_FIRST_INTRA_LATER_INTER,
    FIRST_INTER_LATER_INTRA,
    FIRST_INTRA_LATER_INTER,
    BlendByMeanReward,
    ConditionalAdvantage,
    canon,
)
from grupo.testing.batches import make_batch
from grupo.testing.smoke.check_properties import check_properties


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
    assert method.sampler.group_size == 16
    assert method.loss == Clip(0.2, 0.28)
    assert method.updates == Updates(minibatches=16)


def test_the_blend_follows_the_mean_reward_of_the_batch():
    inter, intra = (ConditionalAdvantage(mu, by_length) for mu in (1.0, 0.0))
    # mean reward 3/4: a quarter of the first, three quarters of the later estimator
    A = BlendByMeanReward(inter, intra)(BATCH.reward, BATCH)
    expected = [0.75 * 0.5, 0.25 * -1.0 + 0.75 * -0.5, 0.25 * 0.5, 0.25 * 0.5]
    assert A.tolist() == pytest.approx(expected)
    mirrored = ConditionalAdvantage(0.75, by_length)
    A = BlendByMeanReward(intra, inter)(BATCH.reward, BATCH)
    assert A.tolist() == pytest.approx(mirrored(BATCH.reward, BATCH).tolist())


def test_mean_rewards_outside_0_to_1_do_not_extrapolate():
    inter, intra = (ConditionalAdvantage(mu, by_length) for mu in (1.0, 0.0))
    batch = make_batch(group=[0] * 4, reward=[3, 0, 3, 3], length=[1, 2, 3, 4])
    A = BlendByMeanReward(inter, intra)(batch.reward, batch)
    assert A.tolist() == intra(batch.reward, batch).tolist()


# biuboomc/CANON @ 7d6f814, cosine_annealing_with_restart: 30 of 150 steps to the peak, then
# 3 cycles of 40 steps; mu is 1 - (peak 0.6, floor 0), and in the reverse variant peak 1, floor 0.4
@pytest.mark.parametrize(
    ("step", "mu_intra_first", "mu_inter_first"),
    [
        (15, 1 - 0.3, 0.5),
        (30, 0.4, 1.0),
        (50, 0.7, 0.7),  # the middle of the first cycle
        (60, 1 - 0.3 * (1 + cos(0.75 * pi)), 0.4 + 0.3 * (1 + cos(0.75 * pi))),
        (70, 0.4, 1.0),
        (130, 0.7, 0.7),
    ],
)
def test_cosine_schedules_of_the_weight(step, mu_intra_first, mu_inter_first):
    progress = step / 150
    assert COSINE_FIRST_INTRA_LATER_INTER.value(progress) == pytest.approx(mu_intra_first)
    assert COSINE_FIRST_INTER_LATER_INTRA.value(progress) == pytest.approx(mu_inter_first)
    method = resolve_schedules(canon(between_weight=COSINE_FIRST_INTRA_LATER_INTER), progress)
    assert method.advantage.between_weight == pytest.approx(mu_intra_first)


def test_schedules_by_reward_start_with_the_comparison_in_their_name():
    assert FIRST_INTER_LATER_INTRA.first == FIRST_INTRA_LATER_INTER.later == ConditionalAdvantage(1)
    assert FIRST_INTER_LATER_INTRA.later == FIRST_INTRA_LATER_INTER.first == ConditionalAdvantage(0)


@pytest.mark.parametrize("schedule", [FIRST_INTER_LATER_INTRA, FIRST_INTRA_LATER_INTER])
def test_schedules_by_reward_satisfy_the_properties(schedule):
    violations = {
        name: violation
        for name, _, violation in check_properties(canon().replace(advantage=schedule))
        if violation
    }
    assert violations == {}
