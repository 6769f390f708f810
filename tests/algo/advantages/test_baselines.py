import pytest

from grupo.algo.advantages import Center
from grupo.core import group_ops
from grupo.testing.batches import make_batch

BATCH = make_batch(group=[0, 1, 0, 0, 1], reward=[1.0, 5.0, 0.0, 0.5, 1.0])


def test_center_subtracts_the_group_mean():
    centred = Center()(BATCH.reward, BATCH)  # means (1 + 0 + 0.5) / 3 = 0.5 and (5 + 1) / 2 = 3
    assert centred.tolist() == [0.5, 2.0, -0.5, 0.0, -2.0]


def test_center_with_leave_one_out_mean_is_rloo():
    centred = Center(group_ops.leave_one_out_mean)(BATCH.reward, BATCH)
    assert centred.tolist() == pytest.approx(
        [1 - (0 + 0.5) / 2, 5 - 1, 0 - (1 + 0.5) / 2, 0.5 - (1 + 0) / 2, 1 - 5]
    )


def test_a_group_of_one_has_advantage_0():
    batch = make_batch(group=[0], reward=[7.0])
    for baseline in (group_ops.mean, group_ops.leave_one_out_mean, group_ops.median):
        assert Center(baseline)(batch.reward, batch).tolist() == [0.0]
