"""S-GRPO: five exits of one thought, of which the second, third and fifth are right."""

import pytest
import torch

from grupo import groups
from grupo.credit import Center, ScaleByStd, chain
from grupo.methods.s_grpo import Decaying, s_grpo
from grupo.sampling import EarlyExits
from grupo.testing import batch_of

RIGHT = [0.0, 1.0, 1.0, 0.0, 1.0]


def serial(reward=RIGHT, place=(0.0, 1.0, 2.0, 3.0, 4.0), group=(0,) * 5):
    return batch_of(group=list(group), reward=list(reward), parts={"exit": list(place)})


def decayed(batch):
    return Decaying()(batch.reward, batch).tolist()


def test_each_right_exit_earns_half_of_the_one_before():
    assert decayed(serial()) == [0.0, 1.0, 0.5, 0.0, 0.25]


def test_the_advantage_is_what_is_earned_above_the_mean():
    A = serial().credited(s_grpo().credit).advantage[:, 0]  # the mean is 1.75 / 5 = 0.35
    assert A.tolist() == pytest.approx([-0.35, 0.65, 0.15, -0.35, -0.1])


def test_the_other_reading_divides_by_the_deviation():
    scaled = chain(Decaying(), Center(), ScaleByStd(0.0, groups.population_std))
    A = serial().credited(scaled).advantage[:, 0]
    assert A.tolist() == pytest.approx([-0.935, 1.737, 0.401, -0.935, -0.267], abs=5e-4)


def test_the_order_is_that_of_the_exits_wherever_they_stand_in_the_batch():
    backwards = serial(RIGHT[::-1], (4.0, 3.0, 2.0, 1.0, 0.0))
    assert decayed(backwards) == [0.25, 0.0, 0.5, 1.0, 0.0]
    without = serial([1.0, 1.0], (1.0, 4.0), (0, 0))  # others of the group could not be judged
    assert decayed(without) == [1.0, 0.5]


def test_groups_count_for_themselves():
    two = serial([1.0, 1.0, 1.0, 1.0], (0.0, 1.0, 0.0, 1.0), (0, 0, 1, 1))
    assert decayed(two) == [1.0, 0.5, 1.0, 0.5]


def test_where_all_are_wrong_nothing_is_learned():
    assert serial([0.0] * 5).credited(s_grpo().credit).advantage.abs().max() == 0


def test_the_defaults_make_eight_of_one_thought():
    assert s_grpo().sample == EarlyExits(7)
    assert s_grpo().sample.n == 8
    assert s_grpo().reads_parts == {"exit"}
    assert torch.equal(
        Decaying()(torch.zeros(2), serial([0.0] * 2, (0.0, 1.0), (0, 0))), torch.zeros(2)
    )
