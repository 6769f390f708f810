from random import Random

import torch

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.testing.batches import make_batch

BATCH = make_batch(group=[0, 1, 0, 2, 1, 3, 4], length=[1, 2, 3, 1, 2, 3, 1])


def test_one_pass_is_the_batch_itself_once():
    assert [*SingleUpdate()(BATCH, Random(0))] == [BATCH]


def test_passes_see_every_row_once_an_epoch_and_keep_groups_whole():
    parts = [*Updates(epochs=3, minibatches=2)(BATCH, Random(0))]
    seen = [[sorted(part.rollout.tolist()) for part in parts[i : i + 2]] for i in (0, 2, 4)]
    assert all(sorted(a + b) == [0, 1, 2, 3, 4, 5, 6] for a, b in seen)
    assert all(({0, 2} <= {*a}) != ({0, 2} <= {*b}) for a, b in seen)
    assert len({tuple(a) for a, _ in seen}) > 1  # another order each epoch


def test_minibatches_keep_the_numbering_of_rollouts_and_groups():
    for part in Updates(minibatches=5)(BATCH, Random(1)):
        assert len(part.row_group.unique()) == 1
        assert torch.equal(part.mask, BATCH.mask[part.rollout])


def test_there_are_no_more_minibatches_than_groups():
    assert len([*Updates(minibatches=99)(BATCH, Random(0))]) == 5


def test_a_plan_draws_from_its_generator_alone():
    orders = [[p.rollout.tolist() for p in Updates(2, 2)(BATCH, Random(3))] for _ in range(2)]
    assert orders[0] == orders[1]
